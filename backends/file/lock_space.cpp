#include "backends/file/lock_space.hpp"

#include <unistd.h>

#include <utility>

#include "backends/file/file_name.hpp"

namespace dlock::file {

namespace {

constexpr int max_replacements = 16;

TryOutcome granted(const LockRequest& request, FencingToken token) {
  return {.status = TryOutcome::Status::granted,
          .grant = {.name = request.name,
                    .owner = request.owner,
                    .token = token,
                    .valid_until = TimePoint::max(),
                    .lease = request.lease,
                    .kind = request.kind,
                    .mode = request.mode}};
}

Failure clash(const std::string& path, const std::string& holder, const std::string& wanted) {
  return {errc::protocol, "file " + path + " belongs to lock \"" + holder + "\", not to \"" + wanted + "\""};
}

}  // namespace

LockSpace::LockSpace(BackendHost& host, LockKind kind, LockDirectory directory, SharedState& shared)
    : host_(host),
      kind_(kind),
      directory_(std::move(directory)),
      known_generation_(directory_.generation()),
      shared_(shared),
      directory_listener_(*this),
      touched_at_(host.executor().now()),
      loss_check_(host.executor()) {}

LockSpace::~LockSpace() = default;

// --- Acquire ---

TryOutcome LockSpace::try_acquire(const LockRequest& request) {
  const std::string file = encode_file_name(request.name);
  NameState* known = find(file);
  if (known != nullptr) {
    if (known->name != request.name) return failed(clash(directory_.path_of(file), known->name, request.name));
    if (const HeldLock* const lease = known->leases.find(request.owner)) return granted(request, lease->token);
    if (auto answer = refused_here(*known, request)) return std::move(*answer);
  }
  if (auto problem = follow_directory()) return failed(std::move(*problem));
  watch_directory();
  if (!request.wait && (known == nullptr || (several() && !known->fd))) {
    if (auto answer = glance(file, request)) return std::move(*answer);
  }
  NameState& state = obtain(file, request.name);
  std::optional<TryOutcome> outcome;
  for (int i = 0; i < max_replacements && !outcome; ++i) outcome = attempt_on(state, request);
  if (!outcome) outcome = failed({errc::unavailable, directory_.path_of(file) + " is replaced again and again"});
  if (outcome->status != TryOutcome::Status::granted && request.wait) {
    settle_later(file);  // keeps the descriptor for the watch that follows
  } else {
    settle(state);
  }
  return std::move(*outcome);
}

std::optional<TryOutcome> LockSpace::attempt_on(NameState& state, const LockRequest& request) {
  if (auto problem = open_file(state)) return failed(std::move(*problem));
  ++shared_.kernel_tries;
  auto lock = enter(state, request);
  if (!lock.ok()) return failed(lock.failure());
  if (lock.value() == LockState::busy) return answer_busy(state);
  auto found = find_file(state.path);
  if (found.ok() && found.value() != state.identity) return retry_elsewhere(state);
  TryOutcome outcome = found.ok() ? grant(state, request) : failed(found.failure());
  // The descriptor stays open as long as a waiter is left: closing it would wake every waiter to the same failure.
  if (outcome.status != TryOutcome::Status::granted) leave(state, request, outcome.status);
  return outcome;
}

std::optional<TryOutcome> LockSpace::retry_elsewhere(NameState& state) {
  drop_file(state);
  directory_suspect_ = true;
  if (auto problem = follow_directory()) return failed(std::move(*problem));
  return std::nullopt;
}

std::optional<TryOutcome> LockSpace::answer_busy(NameState& state) {
  if (state.found_at != TimePoint::min() && now() - state.found_at < trust_path) return busy();
  // Another process may hold the lock of a file that no path leads to any more.
  auto found = find_file(state.path);
  if (found.ok() && found.value() != state.identity) return retry_elsewhere(state);
  state.found_at = now();
  auto content = read_content(state.fd.get(), state.path, kind_);
  // A record that cannot be read now may be just being written; whose file it is will be seen later.
  if (content.ok() && std::holds_alternative<ReadRecord>(content.value().record)) {
    if (auto problem = problem_with(content.value().record, state.name, state.path)) {
      return failed(std::move(*problem));
    }
  }
  return busy();
}

TryOutcome LockSpace::grant(NameState& state, const LockRequest& request) {
  arm_loss_check();  // first, because it needs memory
  state.leases.make_room();
  auto content = read_content(state.fd.get(), state.path, kind_);
  if (!content.ok()) return failed(content.failure());
  if (auto problem = problem_with(content.value().record, state.name, state.path)) return failed(std::move(*problem));
  const auto* stored = std::get_if<ReadRecord>(&content.value().record);
  std::uint32_t slot = 0;
  if (several()) {
    if (auto answer = enter_by_record(state, request, stored, slot)) return std::move(*answer);
  }
  const auto wall = host().executor().clock().wall_now();
  const auto token = next_token(stored != nullptr ? stored->record.token : 0, wall);
  if (!token) {
    return failed(
        {errc::protocol, state.path + ": its fencing token is the largest possible; remove the file to start again"});
  }
  const LockRecord record{.token = *token,
                          .owner = request.owner,
                          .holder = request.holder,
                          .pid = ::getpid(),
                          .since = microseconds(wall),
                          .permits = request.permits};
  BesideRecord beside;
  if (several()) beside = {slot_byte(slot).begin, format_block(record, state.name, kind_)};
  if (kind_ == LockKind::election) beside = {record_end, format_value(request.owner, request.value)};
  if (auto problem = write_record(state.fd.get(), state.path, content.value(), record, state.name, kind_, beside)) {
    return failed(std::move(*problem));
  }
  settle_in(state, request);
  begin_lease(state, {.owner = request.owner, .token = FencingToken(*token), .mode = request.mode});
  return granted(request, FencingToken(*token));
}

std::optional<TryOutcome> LockSpace::glance(const std::string& file, const LockRequest& request) {
  auto existing = directory_.open_existing(file);
  if (!existing.ok() || !existing.value()) return std::nullopt;  // the real try finds the same and says so
  const int fd = existing.value()->get();
  const std::string path = directory_.path_of(file);
  auto lock = look_for(fd, path, request);
  if (!lock.ok() || lock.value() == LockState::free || !directory_.is_current()) return std::nullopt;
  auto content = read_content(fd, path, kind_);
  if (content.ok() && std::holds_alternative<ReadRecord>(content.value().record)) {
    if (auto problem = problem_with(content.value().record, request.name, path)) return failed(std::move(*problem));
  }
  return busy();
}

std::optional<Failure> LockSpace::open_file(NameState& state) {
  if (state.fd) return std::nullopt;
  auto opened = directory_.open_or_create(state.file);
  if (auto problem = follow_directory()) return problem;
  if (!opened.ok()) return opened.failure();
  // No path leads any more to the file that was there before, and that its leases are on.
  if (!state.leases.empty() && opened.value().identity != state.identity) lose(state, true);
  state.fd = std::move(opened.value().fd);
  state.identity = opened.value().identity;
  state.found_at = TimePoint::min();
  if (!state.waiters.empty()) subscribe(state);
  return std::nullopt;
}

void LockSpace::drop_file(NameState& state) noexcept {
  if (!state.fd) return;
  // In this order: closing is what wakes waiters, and the kernel reports it before it removes a lock.
  drop_lock(state.fd.get());
  state.fd.reset();
  state.gate = false;
  state.permits_shared = false;
}

void LockSpace::begin_lease(NameState& state, HeldLock lease) noexcept {
  if (several()) lease.fd = std::move(state.fd);
  if (state.leases.empty()) held_.splice(held_.end(), state.not_held);
  state.leases.add(std::move(lease));
}

void LockSpace::end_lease(NameState& state, HeldLock& lease) noexcept {
  const HeldLock ended = state.leases.take(lease);
  if (ended.fd) {
    drop_lock(ended.fd.get());
  } else if (!several()) {
    drop_file(state);
  }
  if (state.leases.empty()) state.not_held.splice(state.not_held.end(), held_, state.list_entry);
}

std::optional<Failure> LockSpace::follow_directory() {
  if (std::exchange(directory_suspect_, false) && !directory_.is_current()) {
    if (auto problem = directory_.reopen()) {
      directory_suspect_ = true;
      return problem;
    }
  }
  if (std::exchange(known_generation_, directory_.generation()) == directory_.generation()) return std::nullopt;
  directory_subscription_.reset();
  watch_directory();
  host().executor().post(lifetime_.guard([this] { revalidate_all(); }));
  return std::nullopt;
}

// --- Release ---

bool LockSpace::release(const Grant& grant) {
  NameState* const state = find(encode_file_name(grant.name));
  HeldLock* const lease = state != nullptr ? state->leases.find(grant.owner) : nullptr;
  if (lease == nullptr) return false;
  // If the file was replaced and the news is still on its way, another process may have entered.
  auto found = find_file(state->path);
  const bool ours = !found.ok() || found.value() == state->identity;
  end_lease(*state, *lease);
  // With a subscription our own waiters hear of it from the kernel, at the same time as those of other processes, who
  // would never have a chance otherwise.
  if (!state->waiters.empty() && !state->subscription.active()) wake_first(*state);
  settle(*state);
  return ours;
}

// --- Names ---

NameState* LockSpace::find(std::string_view file) noexcept {
  const auto found = names_.find(file);
  return found != names_.end() ? found->second.get() : nullptr;
}

NameState& LockSpace::obtain(const std::string& file, const std::string& name) {
  if (NameState* const known = find(file)) return *known;
  auto state = std::make_unique<NameState>(*this, host().executor(), name, file, directory_.path_of(file));
  return *names_.emplace(state->file, std::move(state)).first->second;
}

void LockSpace::settle(NameState& state) {
  if (!state.waiters.empty()) return;
  if (state.leases.empty()) {
    names_.erase(names_.find(state.file));
  } else if (several()) {
    drop_file(state);  // each lease has its own descriptor
  }
}

void LockSpace::settle_later(const std::string& file) {
  post_for(file, &LockSpace::settle);
}

void LockSpace::post_for(const std::string& file, void (LockSpace::*task)(NameState&)) {
  host().executor().post(lifetime_.guard([this, file, task] {
    if (NameState* const state = find(file)) (this->*task)(*state);
  }));
}

}  // namespace dlock::file
