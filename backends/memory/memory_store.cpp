#include "backends/memory/memory_store.hpp"

#include <algorithm>
#include <utility>

#include "util/per_process.hpp"

namespace dlock::memory {

namespace {

// Tokens keep growing when a store is forgotten and made again, because they are no smaller than the wall clock was.
// Its microseconds fit below 2^63 for as long as system_clock's nanoseconds do.
FencingToken wall_token(const Clock& clock) {
  using std::chrono::microseconds;
  const auto wall = std::chrono::duration_cast<microseconds>(clock.wall_now().time_since_epoch());
  return FencingToken(static_cast<std::uint64_t>(std::max(wall, microseconds(1)).count()));
}

FencingToken next(FencingToken token) {
  return FencingToken(token.value() + 1);
}

// The stores of a parent process stay there, with their holders and waiters.
struct Registry {
  util::Mutex mutex;
  std::map<std::string, std::weak_ptr<MemoryStore>, std::less<>> stores DLOCK_GUARDED_BY(mutex);
};
constinit util::PerProcess<Registry> registry;

}  // namespace

std::shared_ptr<MemoryStore> MemoryStore::named(std::string_view name) {
  Registry& all = registry.get();
  const util::MutexLock guard(all.mutex);
  std::erase_if(all.stores, [](const auto& entry) { return entry.second.expired(); });
  const auto found = all.stores.find(name);
  // The last user may have released the store between the two steps.
  if (auto store = found == all.stores.end() ? nullptr : found->second.lock()) return store;
  auto store = std::make_shared<MemoryStore>();
  all.stores.insert_or_assign(std::string(name), store);
  return store;
}

// --- One lock --------------------------------------------------------------------------------------------------------

MemoryStore::Answer MemoryStore::try_acquire(const LockRequest& request, std::chrono::nanoseconds mark,
                                             const Clock& clock) {
  const util::MutexLock guard(mutex_);
  Lock& lock = open(request, clock);
  const Answer answer = acquire(lock, request, clock);
  if (answer.granted || !request.wait || request.kind != LockKind::read_write || request.mode == Mode::shared) {
    return answer;
  }
  // Without a queue, a stream of readers would keep a waiting writer out for ever. The mark expires, because it stays
  // if the writer gives up.
  const TimePoint now = clock.now();
  if (lock.writer == request.owner || lock.marked_until <= now) {
    lock.writer = request.owner;
    lock.marked_until = saturating_add(now, mark);
  }
  return answer;
}

MemoryStore::Answer MemoryStore::enqueue(const LockRequest& request, OnAnswer on_answer, const Clock& clock) {
  const util::MutexLock guard(mutex_);
  Lock& lock = open(request, clock);
  Answer answer = acquire(lock, request, clock);
  if (answer.granted || answer.other_permits != 0) return answer;
  lock.push({request.owner, holder_text(request), request.lease, request.mode, std::move(on_answer)});
  answer.first_in_line = lock.queue.front().owner == request.owner;
  if (answer.first_in_line) lock.notified = request.owner;
  return answer;
}

bool MemoryStore::renew(const Grant& grant, const Clock& clock) {
  const util::MutexLock guard(mutex_);
  Lock* const lock = find(grant.kind, grant.name, clock);
  Claim* const holder = lock == nullptr ? nullptr : lock->holder(grant.owner);
  if (holder == nullptr) return false;
  holder->lease_ends = saturating_add(clock.now(), grant.lease);
  return true;
}

bool MemoryStore::release(LockKind kind, const std::string& name, const OwnerId& owner, const Clock& clock) {
  const util::MutexLock guard(mutex_);
  Lock* const lock = find(kind, name, clock);
  if (lock == nullptr) return false;
  const bool held = std::erase_if(lock->holders, [&](const Claim& each) { return each.owner == owner; }) > 0;
  if (const auto place = lock->places.find(owner); place != lock->places.end()) (void)lock->pop(place->second);
  const bool marked = lock->writer == owner && lock->marked_until > clock.now();
  if (marked) lock->marked_until = {};
  settle(*lock, held || marked, clock);
  return held;
}

std::uint64_t MemoryStore::watch(LockKind kind, const std::string& name, OnChange on_change) {
  const util::MutexLock guard(mutex_);
  names(kind).locks.try_emplace(name, kind).first->second.watches.emplace(++last_watch_, std::move(on_change));
  return last_watch_;
}

void MemoryStore::unwatch(LockKind kind, const std::string& name, std::uint64_t number) {
  const util::MutexLock guard(mutex_);
  auto& locks = names(kind).locks;
  const auto lock = locks.find(name);
  if (lock == locks.end()) return;
  lock->second.watches.erase(number);
  // An acquire forgets idle names, but no acquire may follow where clients only watch.
  if (lock->second.idle() && lock->second.token == FencingToken()) locks.erase(lock);
}

// --- Administration --------------------------------------------------------------------------------------------------

LockInfo MemoryStore::inspect(LockKind kind, const std::string& name, const Clock& clock) {
  const util::MutexLock guard(mutex_);
  const Lock* const lock = find(kind, name, clock);
  return lock == nullptr ? LockInfo{.name = name, .waiters = 0, .kind = kind} : lock->describe(name, clock.now());
}

std::vector<LockInfo> MemoryStore::list(LockKind kind, const Clock& clock) {
  const util::MutexLock guard(mutex_);
  std::vector<LockInfo> all;
  for (auto& [name, lock] : names(kind).locks) {
    settle(lock, false, clock);
    all.push_back(lock.describe(name, clock.now()));
  }
  std::ranges::sort(all, {}, &LockInfo::name);
  return all;
}

bool MemoryStore::break_lock(LockKind kind, const std::string& name, const Clock& clock) {
  const util::MutexLock guard(mutex_);
  Lock* const lock = find(kind, name, clock);
  if (lock == nullptr || lock->holders.empty()) return false;
  lock->holders.clear();
  settle(*lock, true, clock);
  return true;
}

std::vector<std::string> MemoryStore::forget(const Forgetting& what, const Clock& clock) {
  const util::MutexLock guard(mutex_);
  const auto idle = std::chrono::duration_cast<std::chrono::microseconds>(what.idle).count();
  const auto newest = static_cast<std::int64_t>(wall_token(clock).value()) - idle;
  std::vector<std::string> removed;
  forget_idle_names(names(what.kind), clock, [&](const std::string& name, const Lock& lock) {
    const bool meant = what.name.empty() || what.name == name;
    if (!meant || static_cast<std::int64_t>(lock.token.value()) > newest) return false;
    removed.push_back(name);
    return true;
  });
  return removed;
}

void MemoryStore::kill(const std::string& holder, const Clock& clock, bool leases) {
  const util::MutexLock guard(mutex_);
  const auto killed = [&](const Claim& claim) {
    return claim.holder == holder || claim.holder.starts_with(holder + '\n');
  };
  for (Names& each : names_) {
    for (auto& [name, lock] : each.locks) {
      for (auto next = lock.queue.begin(); next != lock.queue.end();) {
        const auto place = next++;
        if (killed(*place)) (void)lock.pop(place);
      }
      settle(lock, leases && std::erase_if(lock.holders, killed) > 0, clock);
    }
  }
}

std::size_t MemoryStore::residue(const std::string& name, const Clock& clock, LockKind kind) {
  const util::MutexLock guard(mutex_);
  const Lock* const lock = find(kind, name, clock);
  return lock == nullptr ? 0 : lock->queue.size() + lock->holders.size();
}

std::size_t MemoryStore::size() const {
  const util::MutexLock guard(mutex_);
  std::size_t size = 0;
  for (const Names& each : names_) size += each.locks.size();
  return size;
}

// --- The rules -------------------------------------------------------------------------------------------------------

bool MemoryStore::Lock::fits(Mode mode) const noexcept {
  if (holders.empty()) return true;
  if (kind == LockKind::semaphore) return holders.size() < permits;
  return mode == Mode::shared && holders.front().mode == Mode::shared;
}

MemoryStore::Claim* MemoryStore::Lock::holder(const OwnerId& owner) noexcept {
  const auto found = std::ranges::find(holders, owner, &Claim::owner);
  return found == holders.end() ? nullptr : &*found;
}

void MemoryStore::Lock::push(Claim claim) {
  const auto [place, is_new] = places.try_emplace(claim.owner);
  if (is_new) place->second = queue.insert(queue.end(), std::move(claim));
}

MemoryStore::Claim MemoryStore::Lock::pop(std::list<Claim>::iterator place) {
  Claim claim = std::move(*place);
  queue.erase(place);
  places.erase(claim.owner);
  return claim;
}

TimePoint MemoryStore::Lock::first_end() const noexcept {
  TimePoint first = TimePoint::max();
  for (const Claim& holder : holders) first = std::min(first, holder.lease_ends);
  return first;
}

MemoryStore::Answer MemoryStore::acquire(Lock& lock, const LockRequest& request, const Clock& clock) {
  const TimePoint now = clock.now();
  if (Claim* const mine = lock.holder(request.owner)) {
    mine->lease_ends = saturating_add(now, request.lease);
    return {.token = mine->token, .lease_ends = mine->lease_ends, .granted = true};
  }
  if (lock.used() && lock.permits != request.permits) return {.other_permits = lock.permits};
  lock.permits = request.permits;
  if (request.mode == Mode::shared && lock.marked_until > now) return {.lease_ends = lock.marked_until};
  if (!lock.queue.empty() || !lock.fits(request.mode)) return {.lease_ends = lock.first_end()};
  return grant(lock, {request.owner, holder_text(request), request.lease, request.mode}, clock);
}

MemoryStore::Answer MemoryStore::grant(Lock& lock, Claim claim, const Clock& clock) {
  lock.token = std::max({next(lock.token), next(names(lock.kind).floor), wall_token(clock)});
  if (lock.writer == claim.owner) lock.marked_until = {};
  claim.token = lock.token;
  claim.lease_ends = saturating_add(clock.now(), claim.lease);
  const Answer answer{.token = claim.token, .lease_ends = claim.lease_ends, .granted = true};
  if (claim.on_answer) std::exchange(claim.on_answer, nullptr)(answer);
  lock.holders.push_back(std::move(claim));
  if (lock.kind == LockKind::election) {
    for (const auto& [number, on_change] : lock.watches) on_change();
  }
  return answer;
}

// Ends each step: removes holders whose leases have expired, grants the waiters that fit, in their order, and notifies
// a new first in line. `freed`: a holder has left the lock, or a writer's mark.
void MemoryStore::settle(Lock& lock, bool freed, const Clock& clock) {
  if (!lock.holders.empty()) {
    const TimePoint now = clock.now();
    freed |= std::erase_if(lock.holders, [&](const Claim& holder) { return holder.lease_ends <= now; }) > 0;
  }
  while (!lock.queue.empty() && lock.fits(lock.queue.front().mode)) {
    (void)grant(lock, lock.pop(lock.queue.begin()), clock);  // it was notified
  }
  if (!lock.queue.empty()) {
    const Claim& first = lock.queue.front();
    if (std::exchange(lock.notified, first.owner) != first.owner) {
      first.on_answer({.lease_ends = lock.first_end(), .first_in_line = true});
    }
  } else if (freed && lock.fits(Mode::shared)) {
    for (const auto& [number, on_change] : lock.watches) on_change();
  }
}

// --- Names -----------------------------------------------------------------------------------------------------------

MemoryStore::Lock* MemoryStore::find(LockKind kind, const std::string& name, const Clock& clock) {
  auto& locks = names(kind).locks;
  const auto found = locks.find(name);
  if (found == locks.end()) return nullptr;
  settle(found->second, false, clock);
  return &found->second;
}

// Names that are used once and never again must not pile up.
MemoryStore::Lock& MemoryStore::open(const LockRequest& request, const Clock& clock) {
  if (Lock* const lock = find(request.kind, request.name, clock)) return *lock;
  Names& all = names(request.kind);
  if (all.locks.size() >= all.forget_above) {
    forget_idle_names(all, clock, [](const auto&, const auto&) { return true; });
    // Visiting all names only when they have doubled keeps the cost of an acquire constant on average.
    all.forget_above = std::max(most_idle, 2 * all.locks.size());
  }
  return all.locks.try_emplace(request.name, request.kind).first->second;
}

// Of a forgotten name only one fact has to survive: its tokens grow. One number for all names is enough for that.
template <class Condition>
void MemoryStore::forget_idle_names(Names& names, const Clock& clock, Condition condition) {
  for (auto entry = names.locks.begin(); entry != names.locks.end();) {
    auto& [name, lock] = *entry;
    settle(lock, false, clock);
    if (lock.idle() && condition(name, lock)) {
      names.floor = std::max(names.floor, lock.token);
      entry = names.locks.erase(entry);
    } else {
      ++entry;
    }
  }
}

LockInfo MemoryStore::Lock::describe(const std::string& name, TimePoint now) const {
  LockInfo info{.name = name, .held = !holders.empty(), .token = token, .waiters = queue.size(), .kind = kind};
  for (const Claim& holder : holders) {
    const std::chrono::nanoseconds remaining = holder.lease_ends - now;
    if (!info.remaining || remaining > *info.remaining) {
      set_holder(info, holder.holder);
      info.remaining = remaining;
    }
    if (kind == LockKind::read_write || kind == LockKind::semaphore) {
      info.holders.push_back({holder.holder, holder.mode, holder.token, remaining});
    }
  }
  if (kind == LockKind::semaphore && used()) info.permits = permits;
  return info;
}

}  // namespace dlock::memory
