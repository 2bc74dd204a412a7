#include "backends/memory/lock_table.hpp"

#include <algorithm>
#include <iterator>

namespace dlock::memory {

namespace {

// Tokens keep growing when a store is forgotten and made anew, because they are no smaller than the wall clock was.
// Its microseconds fit below 2^63 for as long as system_clock's nanoseconds do.
FencingToken wall_token(const Clock& clock) {
  using std::chrono::microseconds;
  const auto wall = std::chrono::duration_cast<microseconds>(clock.wall_now().time_since_epoch());
  return FencingToken(static_cast<std::uint64_t>(std::max(wall, microseconds(1)).count()));
}

FencingToken next(FencingToken token) {
  return FencingToken(token.value() + 1);
}

}  // namespace

// --- Sessions --------------------------------------------------------------------------------------------------------

void LockTable::detach(Session& session) noexcept {
  const util::MutexLock guard(mutex_);
  for (auto& [name, lock] : locks_) {
    if (lock.session == &session) lock.session = nullptr;
    std::erase_if(lock.watches, [&](const auto& watch) { return watch.second == &session; });
    const OwnerId first = lock.queue.first_owner();
    lock.queue.erase_session(session);
    tell_first_in_line(lock, first);
  }
}

void LockTable::kill(Session& session, const Clock& clock) {
  const util::MutexLock guard(mutex_);
  for (auto& [name, lock] : locks_) {
    std::erase_if(lock.watches, [&](const auto& watch) { return watch.second == &session; });
    const OwnerId first = lock.queue.first_owner();
    lock.queue.erase_session(session);
    if (lock.held && lock.session == &session) {
      hand_over(lock, clock);
    } else {
      tell_first_in_line(lock, first);
    }
  }
}

// --- What clients ask ------------------------------------------------------------------------------------------------

LockTable::Answer LockTable::try_acquire(const LockRequest& request, Session& session, const Clock& clock) {
  const util::MutexLock guard(mutex_);
  return acquire(open(request.name, clock), request, session, clock);
}

LockTable::Answer LockTable::enqueue(const LockRequest& request, Session& session, const Clock& clock) {
  const util::MutexLock guard(mutex_);
  Lock& lock = open(request.name, clock);
  Answer answer = acquire(lock, request, session, clock);
  if (!answer.granted) {
    lock.queue.push({request.owner, request.holder, request.lease, &session});
    answer.first_in_line = lock.queue.first_owner() == request.owner;
  }
  return answer;
}

LockTable::Answer LockTable::acquire(Lock& lock, const LockRequest& request, Session& session, const Clock& clock) {
  if (!lock.held) {
    grant(lock, request.owner, request.holder, &session, request.lease, clock);
  } else if (lock.owner == request.owner) {
    lock.lease_ends = saturating_add(clock.now(), request.lease);
  } else {
    return {.lease_ends = lock.lease_ends};
  }
  return {.granted = true, .token = lock.token, .lease_ends = lock.lease_ends};
}

bool LockTable::renew(const std::string& name, const OwnerId& owner, std::chrono::nanoseconds lease,
                      const Clock& clock) {
  const util::MutexLock guard(mutex_);
  Lock* lock = find(name, clock);
  if (lock == nullptr || !lock->held || lock->owner != owner) return false;
  lock->lease_ends = saturating_add(clock.now(), lease);
  return true;
}

bool LockTable::release(const std::string& name, const OwnerId& owner, const Clock& clock) {
  const util::MutexLock guard(mutex_);
  Lock* lock = find(name, clock);
  if (lock == nullptr) return false;
  if (lock->held && lock->owner == owner) {
    hand_over(*lock, clock);
    return true;
  }
  const OwnerId first = lock->queue.first_owner();
  lock->queue.erase(owner);
  tell_first_in_line(*lock, first);
  return false;
}

LockInfo LockTable::inspect(const std::string& name, const Clock& clock) {
  const util::MutexLock guard(mutex_);
  const Lock* lock = find(name, clock);
  return lock == nullptr ? LockInfo{.name = name, .waiters = 0} : describe(name, *lock, clock);
}

void LockTable::list(std::vector<LockInfo>& all, const Clock& clock) {
  const util::MutexLock guard(mutex_);
  all.reserve(all.size() + locks_.size());
  for (auto& [name, lock] : locks_) {
    settle(lock, clock);
    all.push_back(describe(name, lock, clock));
  }
}

bool LockTable::break_lock(const std::string& name, const Clock& clock) {
  const util::MutexLock guard(mutex_);
  Lock* lock = find(name, clock);
  if (lock == nullptr || !lock->held) return false;
  hand_over(*lock, clock);
  return true;
}

void LockTable::forget(const Forgetting& what, std::vector<std::string>& removed, const Clock& clock) {
  const util::MutexLock guard(mutex_);
  const auto idle = std::chrono::duration_cast<std::chrono::microseconds>(what.idle).count();
  const auto now = static_cast<std::int64_t>(wall_token(clock).value());
  for (auto entry = locks_.begin(); entry != locks_.end();) {
    auto& [name, lock] = *entry;
    settle(lock, clock);
    const bool asked = what.name.empty() || what.name == name;
    const bool old = static_cast<std::int64_t>(lock.token.value()) <= now - idle;
    if (asked && old && lock.idle()) {
      removed.push_back(name);
      entry = forget(entry);
    } else {
      ++entry;
    }
  }
}

void LockTable::watch(const std::string& name, std::uint64_t watch, Session& session) {
  const util::MutexLock guard(mutex_);
  entry(name).watches.emplace(watch, &session);
}

void LockTable::unwatch(const std::string& name, std::uint64_t watch) {
  const util::MutexLock guard(mutex_);
  const auto lock = locks_.find(name);
  if (lock != locks_.end()) lock->second.watches.erase(watch);
}

std::size_t LockTable::residue(const std::string& name, const Clock& clock) {
  const util::MutexLock guard(mutex_);
  const Lock* lock = find(name, clock);
  return lock == nullptr ? 0 : lock->queue.size() + (lock->held ? 1 : 0);
}

std::size_t LockTable::size() const {
  const util::MutexLock guard(mutex_);
  return locks_.size();
}

// --- How a lock changes hands ----------------------------------------------------------------------------------------

void LockTable::grant(Lock& lock, const OwnerId& owner, const std::string& holder, Session* session,
                      std::chrono::nanoseconds lease, const Clock& clock) {
  lock.held = true;
  lock.owner = owner;
  lock.holder = holder;
  lock.session = session;
  lock.lease_ends = saturating_add(clock.now(), lease);
  lock.token = std::max({next(lock.token), next(floor_), wall_token(clock)});
}

void LockTable::settle(Lock& lock, const Clock& clock) {
  if (lock.held && lock.lease_ends <= clock.now()) hand_over(lock, clock);
}

void LockTable::hand_over(Lock& lock, const Clock& clock) {
  lock.held = false;
  if (lock.queue.empty()) {
    for (const auto& [number, session] : lock.watches) session->freed(number);
    return;
  }
  const TimePoint since = clock.now();  // not later than what grant() counts from
  const Waiter next_holder = lock.queue.pop();
  grant(lock, next_holder.owner, next_holder.holder, next_holder.session, next_holder.lease, clock);
  next_holder.session->granted(*lock.name, lock.owner, lock.token, since);
  tell_first_in_line(lock, OwnerId());
}

void LockTable::tell_first_in_line(const Lock& lock, const OwnerId& first_before) {
  const Waiter* first = lock.queue.first();
  if (first == nullptr || first->owner == first_before) return;
  first->session->first_in_line(*lock.name, first->owner, lock.lease_ends);
}

// --- Names -----------------------------------------------------------------------------------------------------------

LockTable::Lock* LockTable::find(const std::string& name, const Clock& clock) {
  const auto found = locks_.find(name);
  if (found == locks_.end()) return nullptr;
  settle(found->second, clock);
  return &found->second;
}

LockTable::Lock& LockTable::open(const std::string& name, const Clock& clock) {
  if (Lock* lock = find(name, clock)) return *lock;
  if (locks_.size() >= forget_above_) forget_idle_names(clock);
  return entry(name);
}

LockTable::Lock& LockTable::entry(const std::string& name) {
  const auto found = locks_.try_emplace(name).first;
  found->second.name = &found->first;
  return found->second;
}

// Names that are used once and never again must not pile up. All that has to survive of them is that tokens grow, and
// for that one number for the whole store is enough.
void LockTable::forget_idle_names(const Clock& clock) {
  for (auto entry = locks_.begin(); entry != locks_.end();) {
    Lock& lock = entry->second;
    settle(lock, clock);
    entry = lock.idle() ? forget(entry) : std::next(entry);
  }
  // Looking through all names only when they have doubled keeps the cost of an acquire constant on average.
  forget_above_ = std::max(most_idle, 2 * locks_.size());
}

LockTable::Locks::iterator LockTable::forget(Locks::iterator entry) {
  floor_ = std::max(floor_, entry->second.token);
  return locks_.erase(entry);
}

LockInfo LockTable::describe(const std::string& name, const Lock& lock, const Clock& clock) {
  LockInfo info{.name = name, .held = lock.held, .token = lock.token, .waiters = lock.queue.size()};
  if (lock.held) {
    info.holder = lock.holder;
    info.remaining = lock.lease_ends - clock.now();
  }
  return info;
}

}  // namespace dlock::memory
