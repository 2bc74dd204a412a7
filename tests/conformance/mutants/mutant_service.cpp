#include "mutants/mutant_service.hpp"

#include <algorithm>
#include <cctype>

namespace dlock::conformance {

namespace {

std::string folded(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
  return name;
}

std::string decoded(std::string name) {
  for (auto at = name.find("%2F"); at != std::string::npos; at = name.find("%2F")) name.replace(at, 3, "/");
  return name;
}

}  // namespace

MutantService::Lock& MutantService::open(const std::string& name, TimePoint now) {
  std::string key = name;
  if (mutation_ == Mutation::folded_case) key = folded(key);
  if (mutation_ == Mutation::decoded_name) key = decoded(key);
  Lock& lock = locks_[key];
  if (lock.held && now >= lock.lease_ends) {
    lock.held = false;
    hand_over(lock, now);
  }
  return lock;
}

void MutantService::grant(Lock& lock, const OwnerId& owner, const std::string& holder, std::chrono::nanoseconds lease,
                          TimePoint now) {
  const bool repeat = mutation_ == Mutation::token_repeats && lock.token.value() % 3 == 2;
  lock.held = true;
  lock.owner = owner;
  lock.holder = holder;
  lock.lease_ends = saturating_add(now, mutation_ == Mutation::early_expiry ? lease / 2 : lease);
  if (!repeat) lock.token = FencingToken(lock.token.value() + 1);
}

void MutantService::hand_over(Lock& lock, TimePoint now) {
  if (lock.queue.empty()) return;
  const bool last = mutation_ == Mutation::last_comes_first;
  const Waiter next = last ? lock.queue.back() : lock.queue.front();
  if (last) {
    lock.queue.pop_back();
  } else {
    lock.queue.pop_front();
  }
  grant(lock, next.owner, next.holder, next.lease, now);
  if (next.inbox != nullptr) next.inbox->granted(next.owner, lock.token, now);
}

MutantService::Answer MutantService::acquire(const LockRequest& request, Inbox* inbox, TimePoint now) {
  const std::scoped_lock guarded(mutex_);
  Lock& lock = open(request.name, now);
  const bool careless = mutation_ == Mutation::two_holders && lock.held;
  if (!lock.held || careless) {
    grant(lock, request.owner, request.holder, request.lease, now);
  } else if (lock.owner != request.owner) {
    if (inbox != nullptr) lock.queue.push_back({request.owner, request.holder, request.lease, inbox});
    return {.lease_ends = lock.lease_ends};
  }
  return {.granted = true, .token = lock.token, .lease_ends = lock.lease_ends};
}

bool MutantService::renew(const std::string& name, const OwnerId& owner, std::chrono::nanoseconds lease,
                          TimePoint now) {
  const std::scoped_lock guarded(mutex_);
  Lock& lock = open(name, now);
  if (mutation_ == Mutation::renewal_revives && !lock.held) {
    lock.held = true;
    lock.owner = owner;
  }
  const bool ours = lock.held && lock.owner == owner;
  if (ours) lock.lease_ends = saturating_add(now, lease);
  return ours || mutation_ == Mutation::renewal_lies;
}

bool MutantService::release(const std::string& name, const OwnerId& owner, TimePoint now) {
  const std::scoped_lock guarded(mutex_);
  Lock& lock = open(name, now);
  const auto waiter =
      std::find_if(lock.queue.begin(), lock.queue.end(), [&](const Waiter& each) { return each.owner == owner; });
  if (waiter != lock.queue.end()) {
    lock.queue.erase(waiter);
    return false;
  }
  const bool ours = lock.held && (lock.owner == owner || mutation_ == Mutation::blind_release);
  if (!ours) return mutation_ == Mutation::release_lies;
  if (mutation_ == Mutation::release_waits_for_lease) return true;
  lock.held = false;
  if (mutation_ != Mutation::lost_wake_up) hand_over(lock, now);
  return true;
}

std::optional<TimePoint> MutantService::look(const std::string& name, TimePoint now) {
  const std::scoped_lock guarded(mutex_);
  const Lock& lock = open(name, now);
  if (!lock.held) return std::nullopt;
  return lock.lease_ends;
}

LockInfo MutantService::inspect(const std::string& name, TimePoint now) {
  const std::scoped_lock guarded(mutex_);
  const Lock& lock = open(name, now);
  LockInfo info{.name = name, .held = lock.held, .token = lock.token, .waiters = lock.queue.size()};
  if (lock.held) {
    info.holder = lock.holder;
    info.remaining = lock.lease_ends - now;
  }
  return info;
}

bool MutantService::break_lock(const std::string& name, TimePoint now) {
  const std::scoped_lock guarded(mutex_);
  Lock& lock = open(name, now);
  if (!lock.held) return false;
  lock.held = false;
  hand_over(lock, now);
  return true;
}

void MutantService::detach(const Inbox& inbox) {
  const std::scoped_lock guarded(mutex_);
  for (auto& [name, lock] : locks_) {
    for (Waiter& waiter : lock.queue) {
      if (waiter.inbox == &inbox) waiter.inbox = nullptr;
    }
  }
}

std::size_t MutantService::residue(const std::string& name, TimePoint now) {
  const std::scoped_lock guarded(mutex_);
  const Lock& lock = open(name, now);
  return lock.queue.size() + (lock.held ? 1 : 0);
}

void MutantService::cut(bool is_cut) {
  const std::scoped_lock guarded(mutex_);
  cut_ = is_cut;
}

bool MutantService::unreachable(const std::string& holder) const {
  const std::scoped_lock guarded(mutex_);
  return cut_ && holder.find(":disturbed") != std::string::npos;
}

}  // namespace dlock::conformance
