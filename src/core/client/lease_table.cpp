#include "core/client/lease_table.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <dlock/duration.hpp>

#include "core/client/client_core.hpp"

namespace dlock::detail {

namespace {

// Whether the next renewal may well succeed. Unknown error codes count as temporary.
bool may_pass(const std::error_code& code) {
  constexpr std::array lasting = {errc::access_denied, errc::invalid_argument, errc::unsupported, errc::protocol};
  return std::find(lasting.begin(), lasting.end(), code) == lasting.end();
}

}  // namespace

std::shared_ptr<LeaseRecord> LeaseTable::hold(Grant grant, const AcquireOptions& options, TimePoint started) {
  const ClientContext& context = core_.context();
  const TimePoint now = core_.executor().now();
  const bool own_lease = context.capabilities.lease_kind == LeaseKind::per_lock;
  TimePoint fixed_end = TimePoint::max();
  if (!options.renew && !own_lease) {
    // The service keeps the lock with the session or process, so the client ends it.
    fixed_end = saturating_add(now, options.lease ? options.lease->value() : context.lease);
    grant.valid_until = std::min(grant.valid_until, fixed_end);
  }
  auto lease = std::make_shared<LeaseRecord>(core_.shared_from_this(), std::move(grant));
  const TimePoint end = lease->valid_until();
  Entry& entry = entries_[lease->owner()];
  entry.record = lease;
  entry.keeping.emplace(
      core_.executor(),
      RenewalSchedule(lease->length(), options.renew && own_lease, lease->granted_at(), end, lease->owner().low()),
      fixed_end);
  follow(entry, entry.keeping->schedule.start(now, end));
  add(core_.counters().held);
  if (core_.notifier().observed()) {
    core_.notifier().tell([event = AcquiredEvent{lease->name(), lease->token(), lease->granted_at() - started}](
                              Observer& observer) { observer.acquired(event); });
  }
  return lease;
}

LeaseTable::Entry* LeaseTable::find(const OwnerId& owner) {
  const auto found = entries_.find(owner);
  return found == entries_.end() ? nullptr : &found->second;
}

// --- Kept ------------------------------------------------------------------------------------------------------------

void LeaseTable::follow(Entry& entry, const Step& step) {
  if (step.valid_until) entry.record->extend(*step.valid_until);
  if (ended_by_program(entry)) return;
  Timer& timer = entry.keeping->timer;
  timer.disarm();
  if (step.wake) {
    timer.arm(*step.wake, [this, &entry] {
      follow(entry, entry.keeping->schedule.due(core_.executor().now(), entry.record->valid_until()));
    });
  }
  if (step.action == RenewalSchedule::Action::renew) {
    renew(entry);
  } else if (step.action == RenewalSchedule::Action::lose) {
    expire(entry);
  }
}

// The program may have seen the end before the engine did, or have released the lease.
bool LeaseTable::ended_by_program(Entry& entry) {
  switch (entry.record->phase()) {
    case LeaseRecord::Phase::held:
    case LeaseRecord::Phase::giving_back:
    case LeaseRecord::Phase::gone:
      return false;
    case LeaseRecord::Phase::lost:
      // held() has returned false, so the lease stays lost, even if a renewal has just arrived.
      expire(entry);
      return true;
    case LeaseRecord::Phase::given_back:
      give_back(entry.record);
      return true;
  }
  return false;
}

void LeaseTable::renew(Entry& entry) {
  entry.keeping->renewal_sent = core_.executor().now();  // one at a time is in flight
  // The answer may come after the lease was released or the client closed.
  core_.backend().renew(entry.record->grant(),
                        [weak = core_.weak_from_this(), owner = entry.record->owner()](const RenewOutcome& outcome) {
                          if (const auto core = weak.lock()) core->leases().renewal_ended(owner, outcome);
                        });
}

void LeaseTable::renewal_ended(const OwnerId& owner, const RenewOutcome& outcome) {
  Entry* const entry = find(owner);
  if (entry == nullptr || !entry->keeping || ended_by_program(*entry)) return;
  Keeping& keeping = *entry->keeping;
  const LeaseRecord& lease = *entry->record;
  const TimePoint now = core_.executor().now();
  if (outcome.status == RenewOutcome::Status::lost) return gone(owner, outcome.failure);
  if (outcome.status == RenewOutcome::Status::failed) {
    add(core_.counters().renew_failed);
    // An unanswered renewal leaves nothing in doubt that matters: the next one decides.
    warn_once(*entry, unanswered_question(outcome.failure));
    const auto retry = may_pass(outcome.failure.code) ? RenewalSchedule::Retry::soon : RenewalSchedule::Retry::seldom;
    return follow(*entry, keeping.schedule.renewal_failed(now, lease.valid_until(), retry));
  }
  const Step step = keeping.schedule.renewed(now, lease.valid_until(), outcome.valid_until);
  if (step.valid_until) {
    keeping.warned_of.clear();
    add(core_.counters().renewed);
    if (core_.notifier().observed()) {
      core_.notifier().tell([event = RenewedEvent{lease.name(), lease.token(), now - keeping.renewal_sent}](
                                Observer& observer) { observer.renewed(event); });
    }
  }
  follow(*entry, step);
}

void LeaseTable::warn_once(Entry& entry, const Failure& failure) {
  auto& warned_of = entry.keeping->warned_of;
  if (std::find(warned_of.begin(), warned_of.end(), failure.code) != warned_of.end()) return;
  warned_of.push_back(failure.code);
  core_.warn({entry.record->name(), failure});
}

void LeaseTable::extended(const OwnerId& owner, TimePoint valid_until) {
  Entry* const entry = find(owner);
  if (entry == nullptr || !entry->keeping) return;
  follow(*entry, entry->keeping->schedule.extended(core_.executor().now(), entry->record->valid_until(),
                                                   std::min(valid_until, entry->keeping->fixed_end)));
}

void LeaseTable::reconnected() {
  std::vector<OwnerId> owners;
  owners.reserve(entries_.size());
  for (const auto& [owner, entry] : entries_) owners.push_back(owner);
  const TimePoint now = core_.executor().now();
  for (const OwnerId& owner : owners) {
    Entry* const entry = find(owner);
    if (entry == nullptr || !entry->keeping) continue;
    follow(*entry, entry->keeping->schedule.reconnected(now, entry->record->valid_until()));
  }
}

// --- Lost ------------------------------------------------------------------------------------------------------------

void LeaseTable::gone(const OwnerId& owner, Failure why) {
  Entry* const entry = find(owner);
  if (entry == nullptr) return;
  entry->in_backend = false;
  if (!why.code) why = {errc::lost, entry->record->described() + " is no longer ours"};
  lose(*entry, std::move(why));
}

void LeaseTable::expire(Entry& entry) {
  lose(entry, {errc::lost, "the lease of " + entry.record->described() + " expired before it was renewed"});
}

void LeaseTable::lose(Entry& entry, Failure why) {
  if (!entry.keeping) return;
  const bool ended_here = entry.keeping->fixed_end != TimePoint::max();
  entry.keeping.reset();
  LeaseRecord& lease = *entry.record;
  subtract(core_.counters().held);
  (void)lease.mark_lost();                                // false if the program saw it first, or is releasing it
  if (lease.phase() != LeaseRecord::Phase::lost) return;  // the task of the release follows, and finds out
  add(core_.counters().lost);
  core_.notifier().signal_loss([lost = entry.record] { lost->fire_lost(); });
  if (core_.notifier().observed()) {
    core_.notifier().tell(
        [event = LostEvent{lease.name(), lease.token(), std::move(why)}](Observer& observer) { observer.lost(event); });
  }
  // With a fixed end, the service would keep the lock with its session or process.
  if (ended_here && std::exchange(entry.in_backend, false)) release_unwanted(lease.grant());
}

// --- Released --------------------------------------------------------------------------------------------------------

void LeaseTable::give_back(std::shared_ptr<LeaseRecord> lease) {
  const bool was_lost = lease->phase() == LeaseRecord::Phase::lost;
  Entry* const entry = find(lease->owner());
  if (entry == nullptr) {
    if (lease->phase() != LeaseRecord::Phase::given_back) return;
    lease->set_gone();
    return lease->answer_release({}, false);
  }
  if (was_lost) lose(*entry, {errc::lost, "the lease of " + lease->described() + " had expired when it was released"});
  if (entry->keeping) subtract(core_.counters().held);
  const bool in_backend = entry->in_backend;
  entries_.erase(lease->owner());
  if (was_lost) {
    // The service may still keep the lock for this owner; the owner id protects the next holder.
    if (in_backend) release_unwanted(lease->grant());
    return;
  }
  lease->set_gone();
  if (in_backend) {
    const Grant grant = lease->grant();
    release_in_backend(grant, std::move(lease));
  } else {  // lost while the release was in flight
    released(*lease, {.status = ReleaseOutcome::Status::not_owner});
  }
}

void LeaseTable::release_unwanted(const Grant& grant) {
  release_in_backend(grant, nullptr);  // no caller waits; the backend goes on by itself
}

void LeaseTable::release_in_backend(const Grant& grant, std::shared_ptr<LeaseRecord> lease) {
  const std::uint64_t number = ++last_release_;
  releasing_.emplace(number, std::move(lease));
  core_.backend().release(grant, [weak = core_.weak_from_this(), number](const ReleaseOutcome& outcome) {
    const auto core = weak.lock();
    if (!core) return;
    const auto answered = core->leases().releasing_.extract(number);
    if (!answered) return;
    if (answered.mapped()) core->leases().released(*answered.mapped(), outcome);
    core->release_answered();
  });
}

// Otherwise their handlers would never run, nor free their captures.
void LeaseTable::end_releases() {
  for (const auto& [number, lease] : std::exchange(releasing_, {})) {
    if (!lease) continue;
    released(*lease,
             {.status = ReleaseOutcome::Status::failed,
              .failure = {errc::ambiguous,
                          "the client was closed before the service confirmed the release of " + lease->described()}});
  }
}

void LeaseTable::released(LeaseRecord& lease, const ReleaseOutcome& outcome) {
  const bool was_ours = outcome.status == ReleaseOutcome::Status::released;
  if (was_ours) add(core_.counters().released);
  if (core_.notifier().observed()) {
    const auto hold = core_.executor().now() - lease.granted_at();
    core_.notifier().tell([event = ReleasedEvent{lease.name(), lease.token(), hold, was_ours}](Observer& observer) {
      observer.released(event);
    });
  }
  lease.answer_release(outcome.status == ReleaseOutcome::Status::failed ? outcome.failure : Failure{}, was_ours);
}

void LeaseTable::close() {
  auto entries = std::exchange(entries_, {});
  for (auto& [owner, entry] : entries) {
    const bool in_backend = std::exchange(entry.in_backend, false);
    lose(entry, {errc::closed, "the client was closed while it held " + entry.record->described()});
    if (in_backend) release_unwanted(entry.record->grant());
  }
}

}  // namespace dlock::detail
