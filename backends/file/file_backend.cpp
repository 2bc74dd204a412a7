#include "backends/file/file_backend.hpp"

#include <unistd.h>

#include <exception>
#include <utility>

#include "backends/file/file_name.hpp"

namespace dlock::file {

namespace {

constexpr int max_replacements = 16;
constexpr auto trust_path = std::chrono::milliseconds(250);

TryOutcome busy() {
  return {.status = TryOutcome::Status::busy};
}
TryOutcome failed(Failure failure) {
  return {.status = TryOutcome::Status::failed, .failure = std::move(failure)};
}

TryOutcome granted(const LockRequest& request, FencingToken token) {
  return {.status = TryOutcome::Status::granted,
          .grant = {.name = request.name,
                    .owner = request.owner,
                    .token = token,
                    .valid_until = TimePoint::max(),
                    .lease = request.lease}};
}

TryOutcome clash(const std::string& path, const std::string& holder, const std::string& wanted) {
  return failed({errc::protocol, "file " + path + " belongs to lock \"" + holder + "\", not to \"" + wanted + "\""});
}

}  // namespace

std::unique_ptr<Backend> make_file_backend(BackendHost& host, const BackendConfig& config) {
  return std::make_unique<FileBackend>(host, parse_location(config.url));
}

FileBackend::FileBackend(BackendHost& backend_host, Location location, std::shared_ptr<SharedState> shared)
    : TryBackend(backend_host),
      location_(std::move(location)),
      directory_(location_.path, location_.mode),
      known_generation_(directory_.generation()),
      shared_(std::move(shared)),
      directory_listener_(*this),
      loss_check_(backend_host.executor()) {}

FileBackend::~FileBackend() = default;

Capabilities FileBackend::capabilities() const noexcept {
  return {.backend = "file",
          .strategy = {},
          .scope = Scope::machine,
          .lease_kind = LeaseKind::process,
          .fencing = FencingDurability::wall_clock,
          .fair = false,
          .wakes_one = false,
          .counts_waiters = false,
          .can_inspect = true,
          .can_list = true,
          .can_break = false,
          .can_forget = true,
          .can_forget_idle = true,
          .immediate = true,
          .min_lease = std::chrono::milliseconds(1),
          .max_lease = std::chrono::nanoseconds::max()};
}

std::unique_ptr<Backend> FileBackend::another(BackendHost& backend_host) const {
  return std::make_unique<FileBackend>(backend_host, location_, shared_);
}

// --- Acquire ---

void FileBackend::try_acquire(const LockRequest& request, TryHandler done) {
  TryOutcome outcome = busy();
  try {
    outcome = attempt(request);
  } catch (const std::exception& e) {  // out of memory
    outcome = failed({errc::unavailable, e.what()});
  }
  done(std::move(outcome));
}

TryOutcome FileBackend::attempt(const LockRequest& request) {
  const std::string file = encode_file_name(request.name);
  NameState* known = find(file);
  if (known != nullptr) {
    if (known->name != request.name) return clash(directory_.path_of(file), known->name, request.name);
    // Our own descriptors of one open() would not exclude each other; this does.
    if (known->lease) return known->lease->owner == request.owner ? granted(request, known->lease->token) : busy();
  }
  if (auto problem = follow_directory()) return failed(std::move(*problem));
  watch_directory();
  if (known == nullptr && !request.wait) {
    if (auto answer = glance(file, request)) return std::move(*answer);
  }
  NameState& state = obtain(file, request.name);
  std::optional<TryOutcome> outcome;
  for (int i = 0; i < max_replacements && !outcome; ++i) outcome = attempt_on(state, request);
  if (!outcome) outcome = failed({errc::unavailable, directory_.path_of(file) + " is being replaced all the time"});
  if (outcome->status != TryOutcome::Status::granted && request.wait) {
    settle_later(file);  // keeps the descriptor for the watch that follows
  } else {
    settle(state);
  }
  return std::move(*outcome);
}

std::optional<TryOutcome> FileBackend::attempt_on(NameState& state, const LockRequest& request) {
  if (auto problem = open_file(state)) return failed(std::move(*problem));
  ++shared_->kernel_tries;
  auto lock = take_lock(state.fd.get(), state.path);
  if (!lock.ok()) return failed(lock.failure());
  if (lock.value() == LockState::busy) return answer_busy(state);
  auto found = find_file(state.path);
  if (found.ok() && found.value() != state.identity) return retry_elsewhere(state);
  TryOutcome outcome = found.ok() ? grant(state, request) : failed(found.failure());
  // The descriptor stays open as long as somebody waits: closing it would wake every waiter to the same failure.
  if (outcome.status != TryOutcome::Status::granted) drop_lock(state.fd.get());
  return outcome;
}

std::optional<TryOutcome> FileBackend::retry_elsewhere(NameState& state) {
  drop_file(state);
  directory_suspect_ = true;
  if (auto problem = follow_directory()) return failed(std::move(*problem));
  return std::nullopt;
}

std::optional<TryOutcome> FileBackend::answer_busy(NameState& state) {
  const TimePoint now = host().executor().now();
  if (state.found_at != TimePoint::min() && now - state.found_at < trust_path) return busy();
  // Somebody may hold the lock of a file that nobody finds any more.
  auto found = find_file(state.path);
  if (found.ok() && found.value() != state.identity) return retry_elsewhere(state);
  state.found_at = now;
  auto content = read_content(state.fd.get(), state.path);
  // A record that cannot be read now may be just being written; whose file it is will be seen later.
  if (content.ok() && std::holds_alternative<ReadRecord>(content.value().record)) {
    if (auto problem = problem_with(content.value().record, state.name, state.path)) {
      return failed(std::move(*problem));
    }
  }
  return busy();
}

TryOutcome FileBackend::grant(NameState& state, const LockRequest& request) {
  arm_loss_check();  // first, because it needs memory
  auto content = read_content(state.fd.get(), state.path);
  if (!content.ok()) return failed(content.failure());
  if (auto problem = problem_with(content.value().record, state.name, state.path)) return failed(std::move(*problem));
  const auto* stored = std::get_if<ReadRecord>(&content.value().record);
  const auto wall = host().executor().clock().wall_now();
  const auto token = next_token(stored != nullptr ? stored->record.token : 0, wall);
  if (!token) {
    return failed(
        {errc::protocol, state.path + ": its fencing token is the largest there is; remove the file to start anew"});
  }
  const LockRecord record{.token = *token,
                          .owner = request.owner,
                          .holder = request.holder,
                          .pid = ::getpid(),
                          .since = microseconds(wall)};
  if (auto problem = write_record(state.fd.get(), state.path, content.value(), record, state.name)) {
    return failed(std::move(*problem));
  }
  begin_lease(state, {request.owner, FencingToken(*token)});
  return granted(request, FencingToken(*token));
}

std::optional<TryOutcome> FileBackend::glance(const std::string& file, const LockRequest& request) {
  auto existing = directory_.open_existing(file);
  if (!existing.ok() || !existing.value()) return std::nullopt;  // the real try finds the same and says so
  const int fd = existing.value()->get();
  const std::string path = directory_.path_of(file);
  auto lock = look_at_lock(fd, path);
  if (!lock.ok() || lock.value() == LockState::free || !directory_.is_current()) return std::nullopt;
  auto content = read_content(fd, path);
  if (content.ok() && std::holds_alternative<ReadRecord>(content.value().record)) {
    if (auto problem = problem_with(content.value().record, request.name, path)) return failed(std::move(*problem));
  }
  return busy();
}

std::optional<Failure> FileBackend::open_file(NameState& state) {
  if (state.fd) return std::nullopt;
  auto opened = directory_.open_or_create(state.file);
  if (auto problem = follow_directory()) return problem;
  if (!opened.ok()) return opened.failure();
  state.fd = std::move(opened.value().fd);
  state.identity = opened.value().identity;
  state.found_at = TimePoint::min();
  if (!state.waiters.empty()) subscribe(state);
  return std::nullopt;
}

void FileBackend::drop_file(NameState& state) noexcept {
  if (!state.fd) return;
  // In this order: closing is what wakes waiters, and the kernel tells of it before it removes a lock.
  drop_lock(state.fd.get());
  state.fd.reset();
}

void FileBackend::begin_lease(NameState& state, const HeldLock& lease) noexcept {
  state.lease = lease;
  held_.splice(held_.end(), state.not_held);
}

void FileBackend::end_lease(NameState& state) noexcept {
  state.lease.reset();
  state.not_held.splice(state.not_held.end(), held_, state.list_entry);
}

std::optional<Failure> FileBackend::follow_directory() {
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

void FileBackend::release(const Grant& grant, ReleaseHandler done) {
  NameState* const state = find(encode_file_name(grant.name));
  if (state == nullptr || !state->lease || state->lease->owner != grant.owner) {
    done({.status = ReleaseOutcome::Status::not_owner});
    return;
  }
  // If the file was replaced and the news is still on its way, somebody else may have entered.
  auto found = find_file(state->path);
  const bool ours = !found.ok() || found.value() == state->identity;
  end_lease(*state);
  drop_file(*state);
  // With a subscription our own waiters hear of it from the kernel, at the same time as those of other processes, who
  // would never have a chance otherwise.
  if (!state->waiters.empty() && !state->subscription.active()) wake_first(*state);
  settle(*state);
  done({.status = ours ? ReleaseOutcome::Status::released : ReleaseOutcome::Status::not_owner});
}

void FileBackend::renew(const Grant& grant, RenewHandler done) {
  const NameState* const state = find(encode_file_name(grant.name));
  if (state != nullptr && state->lease && state->lease->owner == grant.owner) {
    done({.status = RenewOutcome::Status::renewed, .valid_until = TimePoint::max()});
  } else {
    done({.status = RenewOutcome::Status::lost, .failure = {errc::lost, "the lock is no longer ours"}});
  }
}

// --- Names ---

NameState* FileBackend::find(std::string_view file) noexcept {
  const auto found = names_.find(file);
  return found != names_.end() ? found->second.get() : nullptr;
}

NameState& FileBackend::obtain(const std::string& file, const std::string& name) {
  if (NameState* const known = find(file)) return *known;
  auto state = std::make_unique<NameState>(*this, host().executor(), name, file, directory_.path_of(file));
  return *names_.emplace(state->file, std::move(state)).first->second;
}

void FileBackend::settle(NameState& state) {
  if (!state.lease && state.waiters.empty()) {
    names_.erase(names_.find(state.file));
  }
}

void FileBackend::settle_later(const std::string& file) {
  post_for(file, &FileBackend::settle);
}

void FileBackend::post_for(const std::string& file, void (FileBackend::*task)(NameState&)) {
  host().executor().post(lifetime_.guard([this, file, task] {
    if (NameState* const state = find(file)) (this->*task)(*state);
  }));
}

}  // namespace dlock::file
