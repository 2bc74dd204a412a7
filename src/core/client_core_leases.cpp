// The leases of a client: kept, lost, given back.
#include <utility>

#include "core/client_core.hpp"
#include "core/failures.hpp"

namespace dlock::detail {

std::shared_ptr<LeaseState> ClientCore::hold(Grant grant, const AcquireOptions& options, TimePoint started) {
  const bool own_lease = capabilities_.lease_kind == LeaseKind::per_lock;
  const TimePoint now = engine_->now();
  TimePoint fixed_end = TimePoint::max();
  if (!options.renew && !own_lease) {
    // The service keeps the lock with the session or process, so the fixed length is ours to keep.
    fixed_end = saturating_add(now, options.lease ? options.lease->value() : default_lease_);
    grant.valid_until = std::min(grant.valid_until, fixed_end);
  }
  auto state = std::make_shared<LeaseState>(shared_from_this(), clock_, grant, fork_generation_);
  const LeaseKeeper::Terms terms{.lease = grant.lease, .renew = options.renew && own_lease};
  const OwnerId owner = grant.owner;
  auto held = std::make_unique<HeldLease>(*this, std::move(grant), terms, fixed_end, state);
  held->start();
  held_.insert_or_assign(owner, std::move(held));
  add(counters_.held);
  if (observer_) {
    tell([event = AcquiredEvent{state->name(), state->token(), now - started}](Observer& observer) {
      observer.acquired(event);
    });
  }
  return state;
}

void ClientCore::renewal_ended(const OwnerId& owner, const RenewOutcome& outcome) {
  const auto found = held_.find(owner);
  if (found != held_.end()) found->second->renewal_ended(outcome);
}

void ClientCore::extended(const OwnerId& owner, TimePoint valid_until) {
  const auto found = held_.find(owner);
  if (found != held_.end() && !found->second->lost()) found->second->extended(valid_until);
}

void ClientCore::look_after_reconnection() {
  std::vector<OwnerId> owners;
  owners.reserve(held_.size());
  for (const auto& [owner, held] : held_) owners.push_back(owner);
  for (const OwnerId& owner : owners) {
    const auto found = held_.find(owner);
    if (found != held_.end()) found->second->reconnected();
  }
}

void ClientCore::lost(const OwnerId& owner, Failure why) {
  const auto found = held_.find(owner);
  if (found == held_.end()) return;
  found->second->set_gone_from_backend();
  if (!why.code) why = {errc::lost, "lock \"" + found->second->grant().name + "\" is no longer ours"};
  lease_lost(*found->second, std::move(why));
}

void ClientCore::lease_lost(HeldLease& held, Failure why) {
  if (held.lost()) return;
  held.set_lost();
  subtract(counters_.held);
  (void)held.state()->mark_lost();  // false where the program noticed first, or released just now
  if (held.state()->phase() == LeaseState::Phase::released) return;  // the release is on its way, and will find out
  add(counters_.lost);
  notify([state = held.state()] { state->fire_lost(); }, engine::UserCode::loss_signal);
  if (observer_) {
    tell([event = LostEvent{held.grant().name, held.grant().token, std::move(why)}](Observer& observer) {
      observer.lost(event);
    });
  }
  if (held.has_fixed_end() && held.in_backend()) {
    // No lease in the service runs out by itself here.
    held.set_gone_from_backend();
    release_unwanted(held.grant());
  }
}

void ClientCore::release(std::shared_ptr<LeaseState> lease, ReleaseCompletion done) {
  if (lease->foreign_process()) {
    done({}, false);
    return;
  }
  if (lease->expired()) (void)lease->mark_lost();
  const bool was_held = lease->mark_released();
  if (!was_held && lease->phase() == LeaseState::Phase::released) {  // another thread's release, perhaps under way
    done({}, false);
    return;
  }
  const bool accepted = engine_->dispatch(
      [this, self = shared_from_this(), lease, was_held, done] { finish_release(lease, was_held, done); });
  if (!accepted) done({}, false);  // close() made it lost and released it
}

void ClientCore::finish_release(const std::shared_ptr<LeaseState>& lease, bool was_held,
                                const ReleaseCompletion& done) {
  const auto found = held_.find(lease->owner());
  if (found == held_.end()) {
    done({}, false);
    return;
  }
  const auto held = std::move(found->second);
  held_.erase(found);
  if (!was_held) {
    lease_lost(*held, {errc::lost, "the lease of lock \"" + lease->name() + "\" had run out when it was released"});
    done({}, false);
    // The service may still keep the lock for us; the owner id keeps the next holder safe.
    if (held->in_backend()) release_unwanted(held->grant());
    return;
  }
  if (!held->lost()) subtract(counters_.held);
  const auto finish = [this, lease, done](const ReleaseOutcome& outcome) {
    const bool was_ours = outcome.status == ReleaseOutcome::Status::released;
    if (was_ours) add(counters_.released);
    if (observer_) {
      tell([event = ReleasedEvent{lease->name(), lease->token(), engine_->now() - lease->granted_at(), was_ours}](
               Observer& observer) { observer.released(event); });
    }
    done(outcome.status == ReleaseOutcome::Status::failed ? outcome.failure : Failure{}, was_ours);
  };
  if (held->in_backend()) {
    release_in_backend(held->grant(), finish);
  } else {  // lost while the release was on its way
    finish({.status = ReleaseOutcome::Status::not_owner});
  }
}

void ClientCore::release_in_backend(const Grant& grant, std::function<void(const ReleaseOutcome&)> done) {
  ++pending_releases_;
  backend_->release(grant, [weak = weak_from_this(), done = std::move(done)](const ReleaseOutcome& outcome) {
    const auto core = weak.lock();
    if (!core) return;
    --core->pending_releases_;
    done(outcome);
    core->close_backend_when_released();
  });
}

}  // namespace dlock::detail
