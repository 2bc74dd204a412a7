#include "core/client/lease_table.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/client/client_core.hpp"

namespace dlock::detail {

std::shared_ptr<LeaseState> LeaseTable::hold(Grant grant, const AcquireOptions& options, TimePoint started) {
  const ClientContext& context = core_.context();
  const bool own_lease = context.capabilities.lease_kind == LeaseKind::per_lock;
  TimePoint fixed_end = TimePoint::max();
  if (!options.renew && !own_lease) {
    // The service keeps the lock with the session or process, so the fixed length is ours to keep.
    fixed_end = saturating_add(core_.executor().now(), options.lease ? options.lease->value() : context.lease);
    grant.valid_until = std::min(grant.valid_until, fixed_end);
  }
  const LeaseKeeper::Terms terms{.lease = grant.lease, .renew = options.renew && own_lease};
  auto lease = std::make_shared<LeaseState>(core_.shared_from_this(), std::move(grant));
  lease->kept.emplace(*lease, terms, fixed_end);
  leases_.insert_or_assign(lease->owner(), lease);
  lease->kept->start();
  add(core_.counters().held);
  if (core_.notifier().observed()) {
    core_.notifier().tell([event = AcquiredEvent{lease->name(), lease->token(), lease->granted_at() - started}](
                              Observer& observer) { observer.acquired(event); });
  }
  return lease;
}

std::shared_ptr<LeaseState> LeaseTable::find(const OwnerId& owner) const {
  const auto found = leases_.find(owner);
  return found == leases_.end() ? nullptr : found->second;
}

// --- News ------------------------------------------------------------------------------------------------------------

void LeaseTable::renewal_ended(const OwnerId& owner, const RenewOutcome& outcome) const {
  if (const auto lease = find(owner)) lease->kept->renewal_ended(outcome);
}

void LeaseTable::extended(const OwnerId& owner, TimePoint valid_until) const {
  const auto lease = find(owner);
  if (lease && !lease->kept->lost()) lease->kept->extended(valid_until);
}

void LeaseTable::reconnected() {
  std::vector<OwnerId> owners;
  owners.reserve(leases_.size());
  for (const auto& [owner, lease] : leases_) owners.push_back(owner);
  for (const OwnerId& owner : owners) {
    if (const auto lease = find(owner)) lease->kept->reconnected();
  }
}

void LeaseTable::gone(const OwnerId& owner, Failure why) {
  const auto lease = find(owner);
  if (!lease) return;
  lease->kept->set_gone_from_backend();
  if (!why.code) why = {errc::lost, lease->described() + " is no longer ours"};
  lose(*lease, std::move(why));
}

// --- Lost ------------------------------------------------------------------------------------------------------------

void LeaseTable::lose(LeaseState& lease, Failure why) {
  HeldLease& held = *lease.kept;
  if (held.lost()) return;
  held.set_lost();
  subtract(core_.counters().held);
  (void)lease.mark_lost();                               // false where the program noticed first, or is giving it back
  if (lease.phase() != LeaseState::Phase::lost) return;  // the release is on its way, and will find out
  add(core_.counters().lost);
  core_.notifier().signal_loss([lost = lease.shared_from_this()] { lost->fire_lost(); });
  if (core_.notifier().observed()) {
    core_.notifier().tell(
        [event = LostEvent{lease.name(), lease.token(), std::move(why)}](Observer& observer) { observer.lost(event); });
  }
  if (held.has_fixed_end() && held.in_backend()) {
    // No lease in the service expires by itself here.
    held.set_gone_from_backend();
    release_unwanted(lease.grant());
  }
}

// --- Given back ------------------------------------------------------------------------------------------------------

void LeaseTable::give_back(const std::shared_ptr<LeaseState>& lease) {
  const bool was_lost = lease->phase() == LeaseState::Phase::lost;
  const auto found = leases_.find(lease->owner());
  if (found == leases_.end()) {
    if (lease->phase() != LeaseState::Phase::given_back) return;
    lease->set_gone();
    return lease->answer_release({}, false);
  }
  if (was_lost) lose(*lease, {errc::lost, "the lease of " + lease->described() + " had expired when it was released"});
  if (!lease->kept->lost()) subtract(core_.counters().held);
  const bool in_backend = lease->kept->in_backend();
  lease->kept.reset();
  leases_.erase(lease->owner());
  if (was_lost) {
    // The service may still keep the lock for us; the owner id keeps the next holder safe.
    if (in_backend) release_unwanted(lease->grant());
    return;
  }
  lease->set_gone();
  if (in_backend) {
    release_in_backend(lease->grant(), lease);
  } else {  // lost while the release was on its way
    released(*lease, {.status = ReleaseOutcome::Status::not_owner});
  }
}

void LeaseTable::release_unwanted(const Grant& grant) {
  release_in_backend(grant, nullptr);  // no caller waits; the backend goes on by itself
}

void LeaseTable::release_in_backend(const Grant& grant, std::shared_ptr<LeaseState> lease) {
  ++pending_releases_;
  core_.backend().release(grant,
                          [weak = core_.weak_from_this(), lease = std::move(lease)](const ReleaseOutcome& outcome) {
                            const auto core = weak.lock();
                            if (!core) return;
                            --core->leases().pending_releases_;
                            if (lease) core->leases().released(*lease, outcome);
                            core->release_answered();
                          });
}

void LeaseTable::released(LeaseState& lease, const ReleaseOutcome& outcome) {
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
  const auto leases = std::exchange(leases_, {});
  for (const auto& [owner, lease] : leases) {
    const bool in_backend = lease->kept->in_backend();
    lease->kept->set_gone_from_backend();
    lose(*lease, {errc::closed, "the client was closed while it held " + lease->described()});
    lease->kept.reset();
    if (in_backend) release_unwanted(lease->grant());
  }
}

}  // namespace dlock::detail
