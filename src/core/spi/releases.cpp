#include <dlock/spi/releases.hpp>

#include <algorithm>
#include <utility>

#include <dlock/duration.hpp>

namespace dlock {

namespace {

// Each takes a connection that breaks right after the request was sent.
constexpr int max_attempts = 8;
// Packets of a broken connection may arrive after those of the next one, but not much later.
constexpr std::chrono::nanoseconds straggler_time = std::chrono::seconds(1);

}  // namespace

Releases::Releases(Executor& executor, std::chrono::nanoseconds response_timeout, std::chrono::nanoseconds patience,
                   Ask ask)
    : executor_(executor), response_timeout_(response_timeout), patience_(patience), ask_(std::move(ask)) {}

TimePoint Releases::answer_by() const noexcept {
  return saturating_add(executor_.now(), response_timeout_);
}

// --- Locks that are held ---------------------------------------------------------------------------------------------

struct Releases::Attempt {
  Grant grant;
  Backend::ReleaseHandler done;
  TimePoint deadline;
  int count = 0;
  bool ambiguous = false;  // an earlier one may have been carried out
};

void Releases::release(const Grant& grant, Backend::ReleaseHandler done) {
  attempt(std::make_shared<Attempt>(Attempt{grant, std::move(done), answer_by()}));
}

void Releases::attempt(std::shared_ptr<Attempt> attempt) {
  ++attempt->count;
  const Grant& grant = attempt->grant;
  ask_(grant.name, grant.owner, Reason::release, attempt->deadline, [this, attempt](const Result<bool>& answer) {
    using Status = ReleaseOutcome::Status;
    const TimePoint now = executor_.now();
    if (answer.ok()) {
      if (answer.value()) return attempt->done({.status = Status::released});
      if (!attempt->ambiguous) return attempt->done({.status = Status::not_owner});
      // An earlier attempt freed the lock, as no other client can have it before the lease ends; or the lease ended.
      if (now < attempt->grant.valid_until) return attempt->done({.status = Status::released});
      return attempt->done({.status = Status::failed,
                            .failure = {errc::ambiguous,
                                        "the answer to the release was lost, and the lease has ended "
                                        "since; the lock is free"}});
    }
    const Failure& why = answer.failure();
    if (why.code == errc::ambiguous) {
      attempt->ambiguous = true;
      if (now < attempt->deadline && attempt->count < max_attempts) return this->attempt(attempt);
    }
    abandon(attempt->grant.name, attempt->grant.owner, attempt->grant.lease, attempt->ambiguous);
    attempt->done({.status = Status::failed, .failure = why});
  });
}

// --- Owners that gave up ---------------------------------------------------------------------------------------------

void Releases::abandon(const std::string& name, const OwnerId& owner, std::chrono::nanoseconds lease, bool stragglers) {
  const auto [entry, fresh] = entries_.try_emplace(owner, executor_);
  if (!fresh) {
    entry->second.stragglers = entry->second.stragglers || stragglers;
    return;
  }
  entry->second.name = name;
  entry->second.stragglers = stragglers;
  entry->second.moot = saturating_add(executor_.now(), lease + patience_);
  ++unconfirmed_;
  clean(owner);
}

void Releases::heard_of(const OwnerId& owner) {
  const auto found = entries_.find(owner);
  if (found != entries_.end() && found->second.confirmed) clean(owner);
}

void Releases::clean(const OwnerId& owner) {
  const std::string name = entries_.at(owner).name;
  ask_(name, owner, Reason::give_up, answer_by(),
       [this, owner](const Result<bool>& answer) { cleaned(owner, answer); });
}

void Releases::cleaned(const OwnerId& owner, const Result<bool>& answer) {
  const auto found = entries_.find(owner);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  const TimePoint now = executor_.now();
  if (answer.ok()) {
    if (!std::exchange(entry.confirmed, true)) --unconfirmed_;
    if (!std::exchange(entry.stragglers, false)) {
      forget(owner);
    } else {
      entry.timer.arm(saturating_add(now, straggler_time), [this, owner] { clean(owner); });
    }
    return report_if_finished();
  }
  if (answer.failure().code != errc::unavailable) entry.stragglers = true;
  if (now >= entry.moot) {
    forget(owner);
    return report_if_finished();
  }
  const TimePoint again = saturating_add(now, entry.backoff.next(executor_));
  entry.timer.arm(std::min(again, entry.moot), [this, owner] { clean(owner); });
}

void Releases::forget(const OwnerId& owner) {
  const auto found = entries_.find(owner);
  if (!found->second.confirmed) --unconfirmed_;
  entries_.erase(found);
}

void Releases::finish(std::function<void()> done) {
  finished_ = std::move(done);
  report_if_finished();
}

void Releases::report_if_finished() {
  if (!finished_ || unconfirmed_ > 0) return;
  const auto finished = std::exchange(finished_, nullptr);
  finished();
}

}  // namespace dlock
