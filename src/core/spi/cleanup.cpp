#include <dlock/spi/cleanup.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#include <dlock/duration.hpp>

namespace dlock {

namespace {

// Each takes a connection that breaks right after the request was sent.
constexpr int max_attempts = 8;
// Packets of a broken connection may arrive after those of the next one, but not much later.
constexpr std::chrono::nanoseconds late_arrival = std::chrono::seconds(1);

}  // namespace

Cleanup::Cleanup(Executor& executor, std::chrono::nanoseconds response_timeout, std::chrono::nanoseconds patience,
                 Ask ask)
    : executor_(executor), response_timeout_(response_timeout), patience_(patience), ask_(std::move(ask)) {}

TimePoint Cleanup::answer_by() const noexcept {
  return saturating_add(executor_.now(), response_timeout_);
}

// --- Locks that are held ---------------------------------------------------------------------------------------------

struct Cleanup::Attempt {
  Grant grant;
  Backend::ReleaseHandler done;
  TimePoint deadline;
  int count = 0;
  bool ambiguous = false;  // an earlier one may have been carried out
};

void Cleanup::release(const Grant& grant, Backend::ReleaseHandler done) {
  if (in_doubt_.erase(grant.owner) > 0) {
    done = [this, grant, done = std::move(done)](ReleaseOutcome outcome) {
      abandon(grant, true);
      done(std::move(outcome));
    };
  }
  attempt(std::make_shared<Attempt>(Attempt{grant, std::move(done), answer_by()}));
}

void Cleanup::attempt(std::shared_ptr<Attempt> attempt) {
  ++attempt->count;
  const Claim claim{attempt->grant.kind, attempt->grant.name, attempt->grant.owner};
  ask_(claim, Reason::release, attempt->deadline, [this, attempt, claim](const Result<bool>& answer) {
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
    abandon(attempt->grant, attempt->ambiguous);
    attempt->done({.status = Status::failed, .failure = why});
  });
}

// --- Owners that gave up ---------------------------------------------------------------------------------------------

void Cleanup::abandon(Claim claim, std::chrono::nanoseconds lease, bool late_requests) {
  const OwnerId owner = claim.owner;
  in_doubt_.erase(owner);
  const auto [found, fresh] = entries_.try_emplace(owner, executor_);
  Entry& entry = found->second;
  entry.late_requests = entry.late_requests || late_requests;
  if (!fresh) return;
  entry.claim = std::move(claim);
  entry.expires = saturating_add(executor_.now(), lease + patience_);
  ++unconfirmed_;
  clean(owner);
}

void Cleanup::in_doubt(const OwnerId& owner, std::chrono::nanoseconds how_long) {
  const TimePoint now = executor_.now();
  (void)std::erase_if(in_doubt_, [now](const auto& each) { return each.second <= now; });
  in_doubt_[owner] = saturating_add(now, how_long);
}

void Cleanup::retry_now() {
  std::vector<OwnerId> pausing;
  for (const auto& [owner, entry] : entries_) {
    if (!entry.confirmed && entry.timer.armed()) pausing.push_back(owner);
  }
  for (const OwnerId& owner : pausing) {
    const auto found = entries_.find(owner);
    if (found == entries_.end() || !found->second.timer.armed()) continue;
    found->second.timer.disarm();
    found->second.backoff.reset();
    clean(owner);
  }
}

void Cleanup::granted_late(const OwnerId& owner) {
  const auto found = entries_.find(owner);
  if (found != entries_.end() && found->second.confirmed) clean(owner);
}

void Cleanup::clean(const OwnerId& owner) {
  const Claim claim = entries_.at(owner).claim;  // a copy: the answer may come inside the call
  ask_(claim, Reason::give_up, answer_by(), [this, owner](const Result<bool>& answer) { on_answer(owner, answer); });
}

void Cleanup::on_answer(const OwnerId& owner, const Result<bool>& answer) {
  const auto found = entries_.find(owner);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  const TimePoint now = executor_.now();
  if (answer.ok()) {
    if (!std::exchange(entry.confirmed, true)) --unconfirmed_;
    if (!std::exchange(entry.late_requests, false)) {
      forget(owner);
    } else {
      entry.timer.arm(saturating_add(now, late_arrival), [this, owner] { clean(owner); });
    }
    return report_if_finished();
  }
  if (answer.failure().code != errc::unavailable) entry.late_requests = true;
  if (now >= entry.expires) {
    forget(owner);
    return report_if_finished();
  }
  const TimePoint again = saturating_add(now, entry.backoff.next(executor_));
  entry.timer.arm(std::min(again, entry.expires), [this, owner] { clean(owner); });
}

void Cleanup::forget(const OwnerId& owner) {
  const auto found = entries_.find(owner);
  if (!found->second.confirmed) --unconfirmed_;
  entries_.erase(found);
}

void Cleanup::finish(std::function<void()> done) {
  finished_ = std::move(done);
  report_if_finished();
}

void Cleanup::report_if_finished() {
  if (!finished_ || unconfirmed_ > 0) return;
  const auto finished = std::exchange(finished_, nullptr);
  finished();
}

}  // namespace dlock
