#include "backends/memory/lock_table.hpp"

#include <algorithm>
#include <iterator>

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

}  // namespace

// --- Sessions --------------------------------------------------------------------------------------------------------

void LockTable::detach(Session& session) noexcept {
  const util::MutexLock guard(mutex_);
  for (auto& [name, lock] : locks_) {
    for (Holder& holder : lock.holders) {
      if (holder.session == &session) holder.session = nullptr;
    }
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
    if (std::erase_if(lock.holders, [&](const Holder& holder) { return holder.session == &session; }) > 0) {
      free(lock, first, clock);
    } else {
      admit(lock, clock);
      tell_first_in_line(lock, first);
    }
  }
}

// --- What clients ask ------------------------------------------------------------------------------------------------

LockTable::Answer LockTable::try_acquire(const LockRequest& request, std::chrono::nanoseconds mark_length,
                                         Session& session, const Clock& clock) {
  const util::MutexLock guard(mutex_);
  Lock& lock = open(request.name, clock);
  const Answer answer = acquire(lock, request, session, clock);
  if (!answer.granted && request.wait && space_ == LockKind::read_write) mark(lock, request, mark_length, clock);
  return answer;
}

LockTable::Answer LockTable::enqueue(const LockRequest& request, Session& session, const Clock& clock) {
  const util::MutexLock guard(mutex_);
  Lock& lock = open(request.name, clock);
  Answer answer = acquire(lock, request, session, clock);
  if (!answer.granted && !answer.other_permits) {
    lock.queue.push({request.owner, holder_text(request), request.lease, &session, request.mode});
    answer.first_in_line = lock.queue.first_owner() == request.owner;
  }
  return answer;
}

LockTable::Answer LockTable::acquire(Lock& lock, const LockRequest& request, Session& session, const Clock& clock) {
  if (Holder* mine = lock.find(request.owner)) {
    mine->lease_ends = saturating_add(clock.now(), request.lease);
    return {.granted = true, .token = mine->token, .lease_ends = mine->lease_ends};
  }
  if (lock.used() && lock.permits != request.permits) return {.other_permits = lock.permits};
  lock.permits = request.permits;
  if (marked(lock, request, clock)) return {.lease_ends = lock.marked_until};
  if (!lock.queue.empty() || !fits(lock, request.mode)) return {.lease_ends = first_end(lock)};
  const Holder& holder =
      grant(lock, {request.owner, holder_text(request), request.lease, &session, request.mode}, clock);
  return {.granted = true, .token = holder.token, .lease_ends = holder.lease_ends};
}

bool LockTable::renew(const std::string& name, const OwnerId& owner, std::chrono::nanoseconds lease,
                      const Clock& clock) {
  const util::MutexLock guard(mutex_);
  Lock* lock = find(name, clock);
  Holder* holder = lock == nullptr ? nullptr : lock->find(owner);
  if (holder == nullptr) return false;
  holder->lease_ends = saturating_add(clock.now(), lease);
  return true;
}

bool LockTable::release(const std::string& name, const OwnerId& owner, const Clock& clock) {
  const util::MutexLock guard(mutex_);
  Lock* lock = find(name, clock);
  if (lock == nullptr) return false;
  const OwnerId first = lock->queue.first_owner();
  if (Holder* holder = lock->find(owner)) {
    lock->holders.erase(lock->holders.begin() + (holder - lock->holders.data()));
    free(*lock, first, clock);
    return true;
  }
  lock->queue.erase(owner);
  if (lock->writer == owner && lock->marked_until > clock.now()) {
    lock->marked_until = {};
    free(*lock, first, clock);
  } else {
    admit(*lock, clock);  // a writer who leaves the line lets the readers behind it in
    tell_first_in_line(*lock, first);
  }
  return false;
}

LockInfo LockTable::inspect(const std::string& name, const Clock& clock) {
  const util::MutexLock guard(mutex_);
  const Lock* lock = find(name, clock);
  return lock == nullptr ? LockInfo{.name = name, .waiters = 0, .kind = space_} : describe(name, *lock, clock);
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
  if (lock == nullptr || lock->holders.empty()) return false;
  lock->holders.clear();
  free(*lock, lock->queue.first_owner(), clock);
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
  if (lock == locks_.end()) return;
  lock->second.watches.erase(watch);
  // An acquire forgets idle names, but no acquire may follow where clients only watch.
  if (lock->second.idle() && lock->second.token == FencingToken()) locks_.erase(lock);
}

std::size_t LockTable::residue(const std::string& name, const Clock& clock) {
  const util::MutexLock guard(mutex_);
  const Lock* lock = find(name, clock);
  return lock == nullptr ? 0 : lock->queue.size() + lock->holders.size();
}

std::size_t LockTable::size() const {
  const util::MutexLock guard(mutex_);
  return locks_.size();
}

// --- Who enters ------------------------------------------------------------------------------------------------------

LockTable::Holder* LockTable::Lock::find(const OwnerId& owner) noexcept {
  const auto found =
      std::find_if(holders.begin(), holders.end(), [&](const Holder& each) { return each.owner == owner; });
  return found == holders.end() ? nullptr : &*found;
}

bool LockTable::fits(const Lock& lock, Mode mode) const noexcept {
  if (lock.holders.empty()) return true;
  if (space_ == LockKind::semaphore) return lock.holders.size() < lock.permits;
  return mode == Mode::shared && lock.holders.front().mode == Mode::shared;
}

const LockTable::Holder& LockTable::grant(Lock& lock, Waiter who, const Clock& clock) {
  lock.token = std::max({next(lock.token), next(floor_), wall_token(clock)});
  if (lock.writer == who.owner) lock.marked_until = {};
  lock.holders.push_back(
      {who.owner, std::move(who.holder), who.session, saturating_add(clock.now(), who.lease), lock.token, who.mode});
  if (space_ == LockKind::election) {
    for (const auto& [number, session] : lock.watches) session->freed(number);
  }
  return lock.holders.back();
}

void LockTable::settle(Lock& lock, const Clock& clock) {
  if (!lock.used()) return;
  const TimePoint now = clock.now();
  const OwnerId first = lock.queue.first_owner();
  if (std::erase_if(lock.holders, [&](const Holder& holder) { return holder.lease_ends <= now; }) > 0) {
    free(lock, first, clock);
  } else if (!lock.queue.empty()) {
    admit(lock, clock);  // those before it may have left with their session
  }
}

// A holder has gone, or a writer's mark.
void LockTable::free(Lock& lock, const OwnerId& first_before, const Clock& clock) {
  admit(lock, clock);
  tell_first_in_line(lock, first_before);
  if (!lock.queue.empty() || !fits(lock, Mode::shared)) return;
  for (const auto& [number, session] : lock.watches) session->freed(number);
}

// Grants the waiters that fit, in their order.
void LockTable::admit(Lock& lock, const Clock& clock) {
  while (const Waiter* first = lock.queue.first()) {
    if (!fits(lock, first->mode)) return;
    const TimePoint since = clock.now();  // not later than what grant() counts from
    const Holder& holder = grant(lock, lock.queue.pop(), clock);
    holder.session->granted(space_, *lock.name, holder.owner, holder.token, since);
  }
}

void LockTable::tell_first_in_line(const Lock& lock, const OwnerId& first_before) const {
  const Waiter* first = lock.queue.first();
  if (first == nullptr || first->owner == first_before) return;
  // One who fits in already asks at once.
  const TimePoint ask_at = fits(lock, first->mode) ? TimePoint() : first_end(lock);
  first->session->first_in_line(space_, *lock.name, first->owner, ask_at);
}

TimePoint LockTable::first_end(const Lock& lock) noexcept {
  TimePoint first = TimePoint::max();
  for (const Holder& holder : lock.holders) first = std::min(first, holder.lease_ends);
  return first;
}

// Without a line, readers who come and go would keep a waiting writer out for ever. Its mark expires, because it stays
// if the writer goes.
void LockTable::mark(Lock& lock, const LockRequest& request, std::chrono::nanoseconds length, const Clock& clock) {
  if (request.mode == Mode::shared || (lock.marked_until > clock.now() && lock.writer != request.owner)) return;
  lock.writer = request.owner;
  lock.marked_until = saturating_add(clock.now(), length);
}

bool LockTable::marked(const Lock& lock, const LockRequest& request, const Clock& clock) {
  return request.mode == Mode::shared && lock.marked_until > clock.now();
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

LockInfo LockTable::describe(const std::string& name, const Lock& lock, const Clock& clock) const {
  LockInfo info{
      .name = name, .held = !lock.holders.empty(), .token = lock.token, .waiters = lock.queue.size(), .kind = space_};
  const TimePoint now = clock.now();
  for (const Holder& holder : lock.holders) {
    const std::chrono::nanoseconds remaining = holder.lease_ends - now;
    if (!info.remaining || remaining > *info.remaining) {
      set_holder(info, holder.holder);
      info.remaining = remaining;
    }
    if (space_ == LockKind::read_write || space_ == LockKind::semaphore) {
      info.holders.push_back({holder.holder, holder.mode, holder.token, remaining});
    }
  }
  if (space_ == LockKind::semaphore && lock.used()) info.permits = lock.permits;
  return info;
}

}  // namespace dlock::memory
