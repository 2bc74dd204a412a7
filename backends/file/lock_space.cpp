#include "backends/file/lock_space.hpp"

#include <utility>

#include "backends/file/file_name.hpp"

namespace dlock::file {

LockSpace::LockSpace(LockKind kind, LockDirectory directory, ClientState& client)
    : client_(client),
      files_(kind, std::move(directory), client),
      names_(files_, client.host.executor()),
      losses_(files_, names_, client, [this](Name& name) { waiters_.check(name); }),
      waiters_(files_, names_, losses_, client),
      inspector_(files_, losses_, client) {}

TryOutcome LockSpace::try_acquire(const LockRequest& request) {
  const std::string entry = encode_file_name(request.name);
  const Name* const known = names_.find(entry);
  if (known != nullptr) {
    if (known->file.name != request.name) {
      return failed({errc::protocol, "file " + known->file.path + " belongs to lock \"" + known->file.name +
                                         "\", not to \"" + request.name + "\""});
    }
    if (auto answer = refused_here(*known, request)) return std::move(*answer);
  }
  if (auto problem = losses_.follow_directory()) return failed(std::move(*problem));
  (void)losses_.watch_directory();
  if (!request.wait && (known == nullptr || (files_.several() && !known->file.fd))) {
    if (auto answer = files_.peek(entry, request)) return std::move(*answer);
  }
  Name& name = names_.obtain(entry, request.name);
  TryOutcome outcome = acquire(name, request);
  if (outcome.status != TryOutcome::Status::granted && request.wait) {
    names_.post(name,
                [this](Name& found) { names_.settle(found); });  // keeps the descriptor for the watch that follows
  } else {
    names_.settle(name);
  }
  return outcome;
}

std::optional<TryOutcome> LockSpace::refused_here(const Name& name, const LockRequest& request) const {
  const LockFile& file = name.file;
  for (const HeldLock& lease : name.leases) {
    if (lease.owner == request.owner) return granted(request, lease.token);
  }
  if (files_.kind() != LockKind::semaphore) {
    if (name.full() || (request.mode == Mode::shared && file.gate)) return busy();
    return std::nullopt;
  }
  if ((file.permits_shared || !name.leases.empty()) && file.permits != request.permits) {
    return failed(other_permits(request, file.permits));
  }
  // A waiter must have a share in the number of permits, which needs a try.
  if (name.full() && (!request.wait || file.permits_shared)) return busy();
  // A check of each permit costs a system call, which thousands of waiters must not all do.
  const bool full_a_moment_ago = request.wait && file.permits_shared && name.subscription.active() &&
                                 file.full_at != TimePoint::min() && client_.now() - file.full_at < trust_time;
  return full_a_moment_ago ? std::optional(busy()) : std::nullopt;
}

TryOutcome LockSpace::acquire(Name& name, const LockRequest& request) {
  constexpr int max_replacements = 16;
  // Only for a writer with a watch, whose end opens the gate again.
  const bool close_gate = files_.kind() == LockKind::read_write && request.mode == Mode::exclusive && request.wait &&
                          Waiters::writer_waits(name);
  for (int i = 0; i < max_replacements; ++i) {
    if (auto problem = open(name)) return failed(std::move(*problem));
    Attempt attempt = files_.attempt(name.file, request, close_gate);
    if (attempt.retry_soon && request.wait) waiters_.check_soon(name);
    if (attempt.outcome) {
      const Grant& grant = attempt.outcome->grant;
      if (attempt.outcome->status == TryOutcome::Status::granted) {
        losses_.begin(name, {.owner = grant.owner, .token = grant.token, .mode = grant.mode});
      }
      return std::move(*attempt.outcome);
    }
    LockFiles::close(name.file);
    losses_.suspect_directory();
    if (auto problem = losses_.follow_directory()) return failed(std::move(*problem));
  }
  return failed({errc::unavailable, name.file.path + " is replaced again and again"});
}

std::optional<Failure> LockSpace::open(Name& name) {
  LockFile& file = name.file;
  if (file.fd) return std::nullopt;
  auto opened = files_.directory().open_or_create(file.entry);
  if (auto problem = losses_.follow_directory()) return problem;
  if (!opened.ok()) return opened.failure();
  if (!name.leases.empty() && opened.value().identity != file.identity) losses_.lose(name, true);
  file.fd = std::move(opened.value().fd);
  file.identity = opened.value().identity;
  file.found_at = TimePoint::min();
  if (!name.waiters.empty()) waiters_.subscribe(name);
  return std::nullopt;
}

std::unique_ptr<Watch> LockSpace::watch(const LockRequest& request, std::function<void()> changed) {
  Name& name = names_.obtain(encode_file_name(request.name), request.name);
  if (name.file.name != request.name) return nullptr;  // the next try reports the clash
  auto watch = waiters_.add(name, request.mode, std::move(changed));
  if (name.waiters.size() == 1) waiters_.start(name, !open(name).has_value());
  return watch;
}

bool LockSpace::release(const Grant& grant) {
  Name* const name = names_.find(encode_file_name(grant.name));
  HeldLock* const lease = name != nullptr ? name->find_lease(grant.owner) : nullptr;
  if (lease == nullptr) return false;
  // If the file was replaced and the event is still on its way, a different process may have entered.
  auto found = find_file(name->file.path);
  const bool owned = !found.ok() || found.value() == name->file.identity;
  losses_.end(*name, *lease);
  // With a subscription the client's own waiters are woken by the kernel, at the same time as those of other processes,
  // which would never get the lock otherwise.
  if (!name->waiters.empty() && !name->subscription.active()) waiters_.wake_first(*name);
  names_.settle(*name);
  return owned;
}

}  // namespace dlock::file
