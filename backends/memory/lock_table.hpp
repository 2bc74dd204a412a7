// Who holds what and until when, who waits, which token comes next: for a share of a memory store's names.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include <dlock/backend.hpp>
#include <dlock/clock.hpp>
#include <dlock/info.hpp>
#include <dlock/token.hpp>

#include "backends/memory/session.hpp"
#include "backends/memory/wait_queue.hpp"
#include "util/mutex.hpp"

namespace dlock::memory {

// Thread-safe. What each function does, MemoryStore says.
class LockTable {
 public:
  struct Answer {
    bool granted = false;
    FencingToken token = {};    // if granted
    TimePoint lease_ends = {};  // of the current lease, whoever has it
    bool first_in_line = false;
  };

  void detach(Session& session) noexcept;
  void kill(Session& session, const Clock& clock);

  Answer try_acquire(const LockRequest& request, Session& session, const Clock& clock);
  Answer enqueue(const LockRequest& request, Session& session, const Clock& clock);
  bool renew(const std::string& name, const OwnerId& owner, std::chrono::nanoseconds lease, const Clock& clock);
  bool release(const std::string& name, const OwnerId& owner, const Clock& clock);

  [[nodiscard]] LockInfo inspect(const std::string& name, const Clock& clock);
  void list(std::vector<LockInfo>& all, const Clock& clock);
  bool break_lock(const std::string& name, const Clock& clock);
  void forget(const Forgetting& what, std::vector<std::string>& removed, const Clock& clock);

  void watch(const std::string& name, std::uint64_t watch, Session& session);
  void unwatch(const std::string& name, std::uint64_t watch);

  [[nodiscard]] std::size_t residue(const std::string& name, const Clock& clock);
  [[nodiscard]] std::size_t size() const;

 private:
  static constexpr std::size_t most_idle = 64;  // names that are remembered although nobody needs them

  struct Lock {
    const std::string* name = nullptr;  // the key of locks_
    bool held = false;
    OwnerId owner;
    std::string holder;
    Session* session = nullptr;  // nullptr: the holder's client is gone
    TimePoint lease_ends;
    FencingToken token;  // of the current or last lease
    WaitQueue queue;
    std::map<std::uint64_t, Session*> watches;

    [[nodiscard]] bool idle() const noexcept { return !held && queue.empty() && watches.empty(); }
  };

  using Locks = std::unordered_map<std::string, Lock>;

  Lock& open(const std::string& name, const Clock& clock) DLOCK_REQUIRES(mutex_);
  Lock& entry(const std::string& name) DLOCK_REQUIRES(mutex_);
  Lock* find(const std::string& name, const Clock& clock) DLOCK_REQUIRES(mutex_);
  Answer acquire(Lock& lock, const LockRequest& request, Session& session, const Clock& clock) DLOCK_REQUIRES(mutex_);
  void grant(Lock& lock, const OwnerId& owner, const std::string& holder, Session* session,
             std::chrono::nanoseconds lease, const Clock& clock) DLOCK_REQUIRES(mutex_);
  void settle(Lock& lock, const Clock& clock) DLOCK_REQUIRES(mutex_);
  void hand_over(Lock& lock, const Clock& clock) DLOCK_REQUIRES(mutex_);
  static void tell_first_in_line(const Lock& lock, const OwnerId& first_before);
  void forget_idle_names(const Clock& clock) DLOCK_REQUIRES(mutex_);
  Locks::iterator forget(Locks::iterator entry) DLOCK_REQUIRES(mutex_);
  [[nodiscard]] static LockInfo describe(const std::string& name, const Lock& lock, const Clock& clock);

  mutable util::Mutex mutex_;
  Locks locks_ DLOCK_GUARDED_BY(mutex_);
  FencingToken floor_ DLOCK_GUARDED_BY(mutex_);  // no smaller than the token of any forgotten name
  std::size_t forget_above_ DLOCK_GUARDED_BY(mutex_) = most_idle;
};

}  // namespace dlock::memory
