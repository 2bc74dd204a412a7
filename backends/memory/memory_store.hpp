// The lock service behind memory://, the part that would be a server elsewhere. A backend author learns from it what a
// lock service does in one atomic step: compare the owner, end leases by the clock, count tokens upwards, and answer a
// repeated request as before.
//
// The store has no clock and no thread. It reads the time on the calling client's clock, so clients that share a store
// should share a clock. It notices the end of a lease at the next call about that name.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <dlock/clock.hpp>
#include <dlock/info.hpp>
#include <dlock/lock_kind.hpp>
#include <dlock/spi/backend.hpp>
#include <dlock/token.hpp>

#include "util/mutex.hpp"

namespace dlock::memory {

// Thread-safe.
class MemoryStore {
 public:
  struct Answer {
    FencingToken token = {};  // if granted
    // If granted, of this lease; if not, when the first of the current ones ends, or a writer's mark.
    TimePoint lease_ends = {};
    std::uint32_t other_permits = 0;  // refused: others use this number; 0: not refused
    bool granted = false;
    bool first_in_line = false;
  };
  // The store calls both on any thread while it is locked: post a task, and do nothing else.
  using OnAnswer = std::function<void(const Answer&)>;
  using OnChange = std::function<void()>;

  // The store that all clients of memory://name share, until the last of them releases it. A child made by fork() has
  // stores of its own.
  [[nodiscard]] static std::shared_ptr<MemoryStore> named(std::string_view name);

  // --- One lock -----------------------------------------------------------------------------------------------------

  // Grants a request that is compatible with the holders: alone (a lock, a writer), with other readers, or as long as
  // permits are left; but never before those that wait in line. The owner of the lock is granted again: same token, a
  // new lease. A waiting writer that does not get the lock leaves a mark, which keeps readers out for this time.
  Answer try_acquire(const LockRequest& request, std::chrono::nanoseconds mark, const Clock& clock);
  // As try_acquire(), but a request that does not fit waits in line; an owner that waits already keeps its place. The
  // store calls on_answer when it grants the lock, and when the owner becomes the first in line: the store does not
  // notice the end of a lease, so that owner must call again at lease_ends.
  Answer enqueue(const LockRequest& request, OnAnswer on_answer, const Clock& clock);
  // A new lease from now, if the owner's current one is not over. Answers whether that was so.
  bool renew(const Grant& grant, const Clock& clock);
  // Afterwards this owner neither holds the lock nor waits for it. Answers whether it held it.
  bool release(LockKind kind, const std::string& name, const OwnerId& owner, const Clock& clock);

  // Calls on_change whenever the lock becomes free by release or break, and when an election has a new leader, until
  // unwatch() of the number that it returns.
  [[nodiscard]] std::uint64_t watch(LockKind kind, const std::string& name, OnChange on_change);
  void unwatch(LockKind kind, const std::string& name, std::uint64_t number);

  // --- Administration -----------------------------------------------------------------------------------------------

  [[nodiscard]] LockInfo inspect(LockKind kind, const std::string& name, const Clock& clock);
  [[nodiscard]] std::vector<LockInfo> list(LockKind kind, const Clock& clock);  // sorted by name
  bool break_lock(LockKind kind, const std::string& name, const Clock& clock);
  [[nodiscard]] std::vector<std::string> forget(const Forgetting& what, const Clock& clock);

  // --- For tests ----------------------------------------------------------------------------------------------------

  // As if the process of this holder died: removes its owners from the queues and, if the store knows at once, their
  // leases.
  void kill(const std::string& holder, const Clock& clock, bool leases = true);
  // How many owners hold this lock or wait for it.
  [[nodiscard]] std::size_t residue(const std::string& name, const Clock& clock, LockKind kind = LockKind::lock);
  // How many names are remembered.
  [[nodiscard]] std::size_t size() const;

 private:
  static constexpr std::size_t most_idle = 1024;  // unused names of a kind that are still remembered

  // An owner that holds a lock or waits for it.
  struct Claim {
    OwnerId owner;
    std::string holder;
    std::chrono::nanoseconds lease{};
    Mode mode = Mode::exclusive;
    OnAnswer on_answer = nullptr;  // while it waits
    FencingToken token = {};       // this and the next while it holds the lock
    TimePoint lease_ends = {};
  };

  struct Lock {
    explicit Lock(LockKind of) noexcept : kind(of) {}

    LockKind kind;
    std::uint32_t permits = 1;  // of those that hold it or wait
    std::vector<Claim> holders;
    std::list<Claim> queue;                                          // first come, first served
    std::unordered_map<OwnerId, std::list<Claim>::iterator> places;  // in the queue
    OwnerId notified;    // the last owner that learned that it is the first in line
    FencingToken token;  // of the last lease
    std::map<std::uint64_t, OnChange> watches;
    // A writer that waits without a place in the line, and until when that keeps readers out.
    OwnerId writer;
    TimePoint marked_until;

    [[nodiscard]] bool used() const noexcept { return !holders.empty() || !queue.empty(); }
    [[nodiscard]] bool idle() const noexcept { return !used() && watches.empty(); }
    [[nodiscard]] bool fits(Mode mode) const noexcept;
    [[nodiscard]] Claim* holder(const OwnerId& owner) noexcept;
    void push(Claim claim);  // an owner that waits already keeps its place
    Claim pop(std::list<Claim>::iterator place);
    [[nodiscard]] TimePoint first_end() const noexcept;
    [[nodiscard]] LockInfo describe(const std::string& name, TimePoint now) const;
  };

  // The names of one kind.
  struct Names {
    std::unordered_map<std::string, Lock> locks;
    FencingToken floor;  // no smaller than the token of any forgotten name
    std::size_t forget_above = most_idle;
  };

  [[nodiscard]] Names& names(LockKind kind) DLOCK_REQUIRES(mutex_) { return names_[static_cast<std::size_t>(kind)]; }
  Lock* find(LockKind kind, const std::string& name, const Clock& clock) DLOCK_REQUIRES(mutex_);
  Lock& open(const LockRequest& request, const Clock& clock) DLOCK_REQUIRES(mutex_);
  Answer acquire(Lock& lock, const LockRequest& request, const Clock& clock) DLOCK_REQUIRES(mutex_);
  Answer grant(Lock& lock, Claim claim, const Clock& clock) DLOCK_REQUIRES(mutex_);
  void settle(Lock& lock, bool freed, const Clock& clock) DLOCK_REQUIRES(mutex_);
  template <class Condition>
  void forget_idle_names(Names& names, const Clock& clock, Condition condition) DLOCK_REQUIRES(mutex_);

  mutable util::Mutex mutex_;
  std::array<Names, 4> names_ DLOCK_GUARDED_BY(mutex_);  // by kind
  std::uint64_t last_watch_ DLOCK_GUARDED_BY(mutex_) = 0;
};

}  // namespace dlock::memory
