// Holders, expiries, waiters and next tokens: for a share of a memory store's names of one kind.
//
// A request that fits in beside the holders enters: alone (a lock, a writer), with other readers, or as long as permits
// are left; but never before those that wait in line. So neighbouring readers enter together.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <dlock/clock.hpp>
#include <dlock/info.hpp>
#include <dlock/lock_kind.hpp>
#include <dlock/spi/backend.hpp>
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
    FencingToken token = {};  // if granted
    // If granted, of this lease; if not, when the first of the current ones ends, or a writer's mark.
    TimePoint lease_ends = {};
    bool first_in_line = false;
    std::optional<std::uint32_t> other_permits = std::nullopt;  // refused: others use this number
  };

  explicit LockTable(LockKind kind) noexcept : space_(kind) {}

  void detach(Session& session) noexcept;
  void kill(Session& session, const Clock& clock);

  Answer try_acquire(const LockRequest& request, std::chrono::nanoseconds mark_length, Session& session,
                     const Clock& clock);
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
  static constexpr std::size_t most_idle = 64;  // unused names that are still remembered

  struct Holder {
    OwnerId owner;
    std::string holder;
    Session* session = nullptr;  // nullptr: the holder's client is gone
    TimePoint lease_ends;
    FencingToken token;
    Mode mode = Mode::exclusive;
  };

  struct Lock {
    const std::string* name = nullptr;  // the key of locks_
    std::vector<Holder> holders;
    FencingToken token;         // of the last lease
    std::uint32_t permits = 1;  // of those who hold it or wait
    WaitQueue queue;
    std::map<std::uint64_t, Session*> watches;
    // A writer that waits without a place in the line, and until when that keeps readers out.
    OwnerId writer;
    TimePoint marked_until;

    [[nodiscard]] bool used() const noexcept { return !holders.empty() || !queue.empty(); }
    [[nodiscard]] bool idle() const noexcept { return !used() && watches.empty(); }
    [[nodiscard]] Holder* find(const OwnerId& owner) noexcept;
  };

  using Locks = std::unordered_map<std::string, Lock>;

  Lock& open(const std::string& name, const Clock& clock) DLOCK_REQUIRES(mutex_);
  Lock& entry(const std::string& name) DLOCK_REQUIRES(mutex_);
  Lock* find(const std::string& name, const Clock& clock) DLOCK_REQUIRES(mutex_);
  Answer acquire(Lock& lock, const LockRequest& request, Session& session, const Clock& clock) DLOCK_REQUIRES(mutex_);
  [[nodiscard]] bool fits(const Lock& lock, Mode mode) const noexcept;
  [[nodiscard]] static bool marked(const Lock& lock, const LockRequest& request, const Clock& clock);
  static void mark(Lock& lock, const LockRequest& request, std::chrono::nanoseconds length, const Clock& clock);
  const Holder& grant(Lock& lock, Waiter who, const Clock& clock) DLOCK_REQUIRES(mutex_);
  void settle(Lock& lock, const Clock& clock) DLOCK_REQUIRES(mutex_);
  void free(Lock& lock, const OwnerId& first_before, const Clock& clock) DLOCK_REQUIRES(mutex_);
  void admit(Lock& lock, const Clock& clock) DLOCK_REQUIRES(mutex_);
  void tell_first_in_line(const Lock& lock, const OwnerId& first_before) const;
  [[nodiscard]] static TimePoint first_end(const Lock& lock) noexcept;
  void forget_idle_names(const Clock& clock) DLOCK_REQUIRES(mutex_);
  Locks::iterator forget(Locks::iterator entry) DLOCK_REQUIRES(mutex_);
  [[nodiscard]] LockInfo describe(const std::string& name, const Lock& lock, const Clock& clock) const;

  const LockKind space_;
  mutable util::Mutex mutex_;
  Locks locks_ DLOCK_GUARDED_BY(mutex_);
  FencingToken floor_ DLOCK_GUARDED_BY(mutex_);  // no smaller than the token of any forgotten name
  std::size_t forget_above_ DLOCK_GUARDED_BY(mutex_) = most_idle;
};

}  // namespace dlock::memory
