#include "backends/memory/memory_store.hpp"

#include <algorithm>
#include <iterator>

#include "util/per_process.hpp"

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

void MemoryStore::attach(Session& session) {
  const util::MutexLock lock(mutex_);
  sessions_.push_back(&session);
}

void MemoryStore::detach(Session& session) noexcept {
  const util::MutexLock guard(mutex_);
  std::erase(sessions_, &session);
  for (auto& [name, lock] : locks_) {
    if (lock.session == &session) lock.session = nullptr;
    std::erase_if(lock.watches, [&](const auto& watch) { return watch.second == &session; });
    const OwnerId first = lock.queue.first_owner();
    lock.queue.erase_session(session);
    tell_first_in_line(lock, first);
  }
}

void MemoryStore::kill_sessions(const std::string& holder, const Clock& clock) {
  const util::MutexLock guard(mutex_);
  for (Session* session : sessions_) {
    if (session->holder() != holder) continue;
    session->killed();
    for (auto& [name, lock] : locks_) {
      std::erase_if(lock.watches, [&](const auto& watch) { return watch.second == session; });
      const OwnerId first = lock.queue.first_owner();
      lock.queue.erase_session(*session);
      if (lock.held && lock.session == session) {
        hand_over(lock, clock);
      } else {
        tell_first_in_line(lock, first);
      }
    }
  }
}

// --- What clients ask ------------------------------------------------------------------------------------------------

MemoryStore::Answer MemoryStore::try_acquire(const LockRequest& request, Session& session, const Clock& clock) {
  const util::MutexLock guard(mutex_);
  return acquire(open(request.name, clock), request, session, clock);
}

MemoryStore::Answer MemoryStore::enqueue(const LockRequest& request, Session& session, const Clock& clock) {
  const util::MutexLock guard(mutex_);
  Lock& lock = open(request.name, clock);
  Answer answer = acquire(lock, request, session, clock);
  if (!answer.granted) {
    lock.queue.push({request.owner, request.holder, request.lease, &session});
    answer.first_in_line = lock.queue.first_owner() == request.owner;
  }
  return answer;
}

MemoryStore::Answer MemoryStore::acquire(Lock& lock, const LockRequest& request, Session& session, const Clock& clock) {
  if (!lock.held) {
    grant(lock, request.owner, request.holder, &session, request.lease, clock);
  } else if (lock.owner == request.owner) {
    lock.lease_ends = saturating_add(clock.now(), request.lease);
  } else {
    return {.lease_ends = lock.lease_ends};
  }
  return {.granted = true, .token = lock.token, .lease_ends = lock.lease_ends};
}

bool MemoryStore::renew(const std::string& name, const OwnerId& owner, std::chrono::nanoseconds lease,
                        const Clock& clock) {
  const util::MutexLock guard(mutex_);
  Lock* lock = find(name, clock);
  if (lock == nullptr || !lock->held || lock->owner != owner) return false;
  lock->lease_ends = saturating_add(clock.now(), lease);
  return true;
}

bool MemoryStore::release(const std::string& name, const OwnerId& owner, const Clock& clock) {
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

LockInfo MemoryStore::inspect(const std::string& name, const Clock& clock) {
  const util::MutexLock guard(mutex_);
  const Lock* lock = find(name, clock);
  return lock == nullptr ? LockInfo{.name = name, .waiters = 0} : describe(name, *lock, clock);
}

std::vector<LockInfo> MemoryStore::list(const Clock& clock) {
  const util::MutexLock guard(mutex_);
  std::vector<LockInfo> all;
  all.reserve(locks_.size());
  for (auto& [name, lock] : locks_) {
    settle(lock, clock);
    all.push_back(describe(name, lock, clock));
  }
  std::sort(all.begin(), all.end(), [](const LockInfo& a, const LockInfo& b) { return a.name < b.name; });
  return all;
}

bool MemoryStore::break_lock(const std::string& name, const Clock& clock) {
  const util::MutexLock guard(mutex_);
  Lock* lock = find(name, clock);
  if (lock == nullptr || !lock->held) return false;
  hand_over(*lock, clock);
  return true;
}

std::uint64_t MemoryStore::watch(const std::string& name, Session& session) {
  const util::MutexLock guard(mutex_);
  entry(name).watches.emplace(++last_watch_, &session);
  return last_watch_;
}

void MemoryStore::unwatch(const std::string& name, std::uint64_t watch) {
  const util::MutexLock guard(mutex_);
  const auto lock = locks_.find(name);
  if (lock != locks_.end()) lock->second.watches.erase(watch);
}

std::size_t MemoryStore::residue(const std::string& name, const Clock& clock) {
  const util::MutexLock guard(mutex_);
  const Lock* lock = find(name, clock);
  return lock == nullptr ? 0 : lock->queue.size() + (lock->held ? 1 : 0);
}

std::size_t MemoryStore::size() const {
  const util::MutexLock guard(mutex_);
  return locks_.size();
}

// --- How a lock changes hands ----------------------------------------------------------------------------------------

void MemoryStore::grant(Lock& lock, const OwnerId& owner, const std::string& holder, Session* session,
                        std::chrono::nanoseconds lease, const Clock& clock) {
  lock.held = true;
  lock.owner = owner;
  lock.holder = holder;
  lock.session = session;
  lock.lease_ends = saturating_add(clock.now(), lease);
  lock.token = std::max({next(lock.token), next(floor_), wall_token(clock)});
}

void MemoryStore::settle(Lock& lock, const Clock& clock) {
  if (lock.held && lock.lease_ends <= clock.now()) hand_over(lock, clock);
}

void MemoryStore::hand_over(Lock& lock, const Clock& clock) {
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

void MemoryStore::tell_first_in_line(const Lock& lock, const OwnerId& first_before) {
  const Waiter* first = lock.queue.first();
  if (first == nullptr || first->owner == first_before) return;
  first->session->first_in_line(*lock.name, first->owner, lock.lease_ends);
}

// --- Names -----------------------------------------------------------------------------------------------------------

MemoryStore::Lock* MemoryStore::find(const std::string& name, const Clock& clock) {
  const auto found = locks_.find(name);
  if (found == locks_.end()) return nullptr;
  settle(found->second, clock);
  return &found->second;
}

MemoryStore::Lock& MemoryStore::open(const std::string& name, const Clock& clock) {
  if (Lock* lock = find(name, clock)) return *lock;
  if (locks_.size() >= forget_above_) forget_idle_names(clock);
  return entry(name);
}

MemoryStore::Lock& MemoryStore::entry(const std::string& name) {
  const auto found = locks_.try_emplace(name).first;
  found->second.name = &found->first;
  return found->second;
}

// Names that are used once and never again must not pile up. All that has to survive of them is that tokens grow, and
// for that one number for the whole store is enough.
void MemoryStore::forget_idle_names(const Clock& clock) {
  for (auto entry = locks_.begin(); entry != locks_.end();) {
    Lock& lock = entry->second;
    settle(lock, clock);
    floor_ = lock.idle() ? std::max(floor_, lock.token) : floor_;
    entry = lock.idle() ? locks_.erase(entry) : std::next(entry);
  }
  // Looking through all names only when they have doubled keeps the cost of an acquire constant on average.
  forget_above_ = std::max<std::size_t>(1024, 2 * locks_.size());
}

LockInfo MemoryStore::describe(const std::string& name, const Lock& lock, const Clock& clock) {
  LockInfo info{.name = name, .held = lock.held, .token = lock.token, .waiters = lock.queue.size()};
  if (lock.held) {
    info.holder = lock.holder;
    info.remaining = lock.lease_ends - clock.now();
  }
  return info;
}

// --- Registry --------------------------------------------------------------------------------------------------------

namespace {

// The stores of a parent process stay there, with their holders and waiters.
struct Registry {
  util::Mutex mutex;
  std::map<std::string, std::weak_ptr<MemoryStore>, std::less<>> stores DLOCK_GUARDED_BY(mutex);
};
constinit util::PerProcess<Registry> registry;

}  // namespace

std::shared_ptr<MemoryStore> MemoryStore::named(std::string_view name) {
  Registry& all = registry.get();
  const util::MutexLock lock(all.mutex);
  std::erase_if(all.stores, [](const auto& entry) { return entry.second.expired(); });
  const auto found = all.stores.find(name);
  // Between the two steps the last user may have let go.
  if (auto store = found == all.stores.end() ? nullptr : found->second.lock()) return store;
  auto store = std::make_shared<MemoryStore>();
  all.stores.insert_or_assign(std::string(name), store);
  return store;
}

}  // namespace dlock::memory
