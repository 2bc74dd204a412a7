#include "backends/postgres/session_locks/kept_locks.hpp"

#include <algorithm>
#include <utility>

#include <dlock/duration.hpp>

#include "util/names.hpp"

namespace dlock::postgres {

namespace {

// Every answer confirms the session, and there may be a thousand locks: they are extended in steps of the lease.
constexpr int steps_per_lease = 16;

}  // namespace

void KeptLocks::add(const Grant& grant, LockKey key) {
  // A later one may be safe for a shorter time than the others were told.
  told_ = locks_.empty() ? grant.valid_until : std::min(told_, grant.valid_until);
  locks_.insert_or_assign(grant.owner, Lock{grant.name, std::move(key), grant.valid_until});
}

std::optional<LockKey> KeptLocks::take(const OwnerId& owner) {
  const auto found = locks_.find(owner);
  if (found == locks_.end()) return std::nullopt;
  LockKey key = std::move(found->second.key);
  locks_.erase(found);
  return key;
}

std::vector<LockKey> KeptLocks::session_alive(TimePoint sent) {
  const TimePoint valid_until = lease_valid_until(sent, lease_);
  if (locks_.empty() || valid_until < saturating_add(told_, lease_ / steps_per_lease)) return {};
  told_ = valid_until;
  std::vector<OwnerId> owners;  // the host may release one while it is told
  owners.reserve(locks_.size());
  for (const auto& [owner, lock] : locks_) owners.push_back(owner);
  std::vector<LockKey> late;
  const TimePoint now = host_.executor().now();
  for (const OwnerId& owner : owners) {
    const auto found = locks_.find(owner);
    if (found == locks_.end()) continue;
    Lock& lock = found->second;
    if (!may_be_over(lock.valid_until, now)) {
      lock.valid_until = std::max(lock.valid_until, valid_until);
      host_.extended(owner, lock.valid_until);
      continue;
    }
    const Failure why{errc::lost,
                      "PostgreSQL did not answer before the lease of lock " + util::quoted(lock.name) + " expired"};
    late.push_back(std::move(lock.key));
    locks_.erase(found);
    host_.lost(owner, why);
  }
  return late;
}

void KeptLocks::lose_all(const Failure& why) {
  const auto locks = std::exchange(locks_, {});
  for (const auto& [owner, lock] : locks) {
    host_.lost(owner,
               {errc::lost, "the session that held lock " + util::quoted(lock.name) + " is lost: " + why.detail});
  }
}

}  // namespace dlock::postgres
