#include "backends/common/sql/row_locks.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include <dlock/duration.hpp>
#include <dlock/spi/backoff.hpp>

namespace dlock::sql {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

// Another client is changing the row, so the next try is soon.
constexpr nanoseconds while_changing = milliseconds(50);

// No release wakes a waiter that is the first in the server's queue already, because the holder has lost its bell: it
// polls. Each lock has at most one such waiter.
constexpr nanoseconds shortest_poll_of_first = milliseconds(200);
constexpr nanoseconds longest_poll_of_first = milliseconds(300);

// The core's timer goes first: once it has declared a lease as lost, no answer to a renewal brings that back. The
// server waits for a little longer before it lets others take the lock without its bell, which would wake no waiter.
constexpr nanoseconds behind_the_lease = milliseconds(1);

// The permits of a read-write lock; a writer takes all of them.
constexpr std::int64_t all_permits = 2'147'483'647;
// A writer's mark lasts for at most this many of its polls. The writer tries again when half of it has passed.
constexpr int polls_per_mark = 3;

constexpr TryPolicy woken{.poll_min = std::chrono::seconds(1), .poll_max = std::chrono::seconds(2)};
constexpr TryPolicy polling{.poll_min = milliseconds(50), .poll_max = milliseconds(150)};

// If the row has the lease, an abandoned row is free when that expires. Otherwise a client must first see the row
// unchanged for a lease, so it is worth while to release the row of an abandoned acquire for longer.
constexpr nanoseconds patience_if_optimistic = std::chrono::minutes(10);
// After this time without contact, the server has ended the session, and with it everything that it held.
constexpr nanoseconds patience_with_sessions = std::chrono::minutes(1);

}  // namespace

RowLocks::RowLocks(const Services& services, const Capabilities& capabilities, bool optimistic,
                   std::unique_ptr<const RowStore> store, const MakeWaker& make_waker)
    : TryBackend(services.host, make_waker ? woken : polling),
      services_(services),
      capabilities_(capabilities),
      optimistic_(optimistic),
      store_(std::move(store)),
      batch_(services.commands, *store_),
      waker_(make_waker ? make_waker(*store_) : nullptr),
      cleanup_(services.host.executor(), services.dialling.response_timeout,
               optimistic                  ? patience_if_optimistic
               : store_->outlives_leases() ? patience_with_sessions
                                           : nanoseconds(0),
               [this](const Cleanup::Claim& claim, Cleanup::Reason reason, TimePoint deadline, Cleanup::Answer done) {
                 batch_.ask({.kind = RowRequest::Kind::release,
                             .name = claim.name,
                             .owner = claim.owner,
                             .deadline = deadline,
                             .gave_up = reason == Cleanup::Reason::give_up},
                            [this, owner = claim.owner, done = std::move(done)](const RowAnswer& answer) {
                              // A lock that could not be released keeps others out, as a held one does.
                              if (answer.status == RowAnswer::Status::failed) return done(answer.failure);
                              leave(owner);
                              done(answer.status == RowAnswer::Status::yes);
                            });
               }) {
  if (FullServer* const full = services_.dialling.full) {
    full->holds_if([this] { return holds_any(); });
  }
}

RowLocks::~RowLocks() = default;

// --- Acquiring -------------------------------------------------------------------------------------------------------

nanoseconds RowLocks::mark_of(const LockRequest& request) const {
  if (store_->kind() != LockKind::read_write || request.mode == Mode::shared || !request.wait) return {};
  return std::min<nanoseconds>(polls_per_mark * (waker_ ? woken : polling).poll_max, request.lease);
}

void RowLocks::try_acquire(const LockRequest& request, TryHandler done) {
  RowRequest row{.kind = RowRequest::Kind::acquire,
                 .name = request.name,
                 .owner = request.owner,
                 .deadline = services_.commands.answer_by(),
                 .holder = holder_text(request),
                 .may_be_held = cleanup_.is_in_doubt(request.owner),
                 .lease = request.lease,
                 .patient = request.wait};
  if (optimistic_) row.stood_still = observed_.over(request.name, host().executor().now());
  if (store_->sharing()) {
    row.permits = store_->kind() == LockKind::semaphore ? request.permits : all_permits;
    row.weight = store_->kind() == LockKind::semaphore || request.mode == Mode::shared ? 1 : all_permits;
    row.mark = mark_of(request);
  }
  if (waker_) waker_->trying(row);
  const bool is_first = row.place != 0;
  batch_.ask(std::move(row), [=, this, done = std::move(done)](const RowAnswer& answer) {
    TryOutcome outcome = outcome_of(request, answer);
    if (outcome.status == TryOutcome::Status::busy && is_first) {
      const nanoseconds poll = random_between(shortest_poll_of_first, longest_poll_of_first, host().executor());
      outcome.retry_after = std::min(outcome.retry_after.value_or(poll), poll);
    }
    done(std::move(outcome));
  });
}

TryOutcome RowLocks::outcome_of(const LockRequest& request, const RowAnswer& answer) {
  using Status = TryOutcome::Status;
  if (answer.status == RowAnswer::Status::failed) {
    if (answer.failure.code == errc::ambiguous) cleanup_.in_doubt(request.owner, capabilities_.max_lease);
    return {.status = Status::failed, .failure = answer.failure};
  }
  if (answer.other_permits) {
    return {.status = Status::failed,
            .failure = other_permits(request, static_cast<std::uint32_t>(*answer.other_permits))};
  }
  if (answer.status != RowAnswer::Status::yes && !answer.lease && cleanup_.is_in_doubt(request.owner)) {
    return {.status = Status::failed,
            .failure = {errc::ambiguous, "another transaction is changing the row of lock \"" + request.name +
                                             "\", which may be ours because an answer was lost"}};
  }
  if (answer.status == RowAnswer::Status::yes) {
    observed_.forget(request.name);
    if (waker_) waker_->taken(request.name, request.owner);
    const TimePoint valid_until = lease_valid_until(answer.sent, request.lease);
    const Grant grant{request.name,  request.owner,  answer.token, valid_until,
                      request.lease, store_->kind(), request.mode};
    note_held(grant);
    return {.status = Status::granted, .grant = grant};
  }
  if (!answer.lease) return {.status = Status::busy, .retry_after = while_changing};
  const nanoseconds mark = mark_of(request);
  if (mark > nanoseconds(0)) return {.status = Status::busy, .retry_after = std::min(*answer.lease, mark / 2)};
  if (!optimistic_ || answer.seen.owner.empty()) return {.status = Status::busy, .retry_after = answer.lease};
  const TimePoint now = host().executor().now();
  return {.status = Status::busy, .retry_after = observed_.note(request.name, answer.seen, *answer.lease, now)};
}

std::unique_ptr<Watch> RowLocks::watch(LockKind /*kind*/, const std::string& name, std::function<void()> changed) {
  return waker_ ? waker_->watch(name, nullptr, std::move(changed)) : nullptr;
}

std::unique_ptr<Watch> RowLocks::wait_for(const LockRequest& request, std::function<void()> changed) {
  return waker_ ? waker_->watch(request.name, &request.owner, std::move(changed)) : nullptr;
}

void RowLocks::abandon(const LockRequest& request) {
  cleanup_.abandon(request, true);
}

// --- Held locks ------------------------------------------------------------------------------------------------------

void RowLocks::renew(const Grant& grant, RenewHandler done) {
  const TimePoint deadline =
      saturating_add(host().executor().now(), std::min(services_.dialling.response_timeout, grant.lease / 4));
  RowRequest row{.kind = RowRequest::Kind::renew,
                 .name = grant.name,
                 .owner = grant.owner,
                 .deadline = deadline,
                 .lease = grant.lease};
  batch_.ask(std::move(row), [=, this, done = std::move(done)](const RowAnswer& answer) {
    using Status = RenewOutcome::Status;
    if (answer.status == RowAnswer::Status::failed) return done({.status = Status::failed, .failure = answer.failure});
    if (answer.status == RowAnswer::Status::no) {
      leave(grant.owner);
      return done({.status = Status::lost,
                   .failure = {errc::lost, "the row of lock \"" + grant.name + "\" is no longer ours"}});
    }
    const TimePoint valid_until = lease_valid_until(answer.sent, grant.lease);
    Grant renewed = grant;
    renewed.valid_until = valid_until;
    note_held(renewed);
    done({.status = Status::renewed, .valid_until = valid_until});
  });
}

void RowLocks::release(const Grant& grant, ReleaseHandler done) {
  if (!store_->outlives_leases()) return cleanup_.release(grant, std::move(done));
  cleanup_.release(grant, [this, grant, done = std::move(done)](ReleaseOutcome outcome) {
    // The lock was broken. A release by an owner that gives up makes the session give back what it keeps for the lock.
    if (outcome.status == ReleaseOutcome::Status::not_owner) cleanup_.abandon(grant, false);
    done(std::move(outcome));
  });
}

void RowLocks::note_held(const Grant& grant) {
  constexpr std::size_t few = 64;
  Held& held = held_.try_emplace(grant.owner, host().executor()).first->second;
  held.until = grant.valid_until;
  if (store_->outlives_leases()) {
    held.end.arm(saturating_add(held.until, behind_the_lease), [this, grant] {
      cleanup_.abandon(grant, false);
      if (waker_) waker_->left(grant.owner);
    });
  }
  if (held_.size() <= 2 * std::max(tidied_to_, few)) return;
  (void)std::erase_if(held_, [now = host().executor().now()](const auto& item) {
    return item.second.until <= now && !item.second.end.armed();
  });
  tidied_to_ = held_.size();
}

void RowLocks::leave(const OwnerId& owner) {
  held_.erase(owner);
  if (waker_) waker_->left(owner);
}

bool RowLocks::holds_any() const {
  const TimePoint now = host().executor().now();
  return std::any_of(held_.begin(), held_.end(), [now](const auto& item) { return item.second.until > now; });
}

void RowLocks::close(std::function<void()> done) {
  TryBackend::close([this, done = std::move(done)] { cleanup_.finish(done); });
}

}  // namespace dlock::sql
