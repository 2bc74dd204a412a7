// The lock service behind memory://, the part that would be a server elsewhere: who holds what and until when, who
// waits, which token comes next. Clients reach it through a Connection.
//
// Every operation says who asks (an owner id) and may be repeated without harm. The store has no clock and no thread:
// it reads the time on the clock of whoever asks, so clients that share a store should share a clock, and it notices
// the end of a lease when next asked about that name.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <dlock/backend.hpp>
#include <dlock/clock.hpp>
#include <dlock/info.hpp>
#include <dlock/token.hpp>

#include "backends/memory/memory_faults.hpp"
#include "backends/memory/wait_queue.hpp"
#include "util/mutex.hpp"

namespace dlock::memory {

// A client as the store knows it. The functions are called on any thread with the store locked: they only pass the news
// on.
class Session {
 public:
  explicit Session(std::string holder) : holder_(std::move(holder)) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] const std::string& holder() const noexcept { return holder_; }

  // A queued owner got the lock; its lease counts from `since`.
  virtual void granted(const std::string& name, const OwnerId& owner, FencingToken token, TimePoint since) = 0;
  // A queued owner has become the first in line, and so the one to ask again when the current lease ends.
  virtual void first_in_line(const std::string& name, const OwnerId& owner, TimePoint lease_ends) = 0;
  // The lock that is watched under this number became free.
  virtual void freed(std::uint64_t watch) = 0;
  // The session was killed: nothing that this client sends counts any more.
  virtual void killed() = 0;

 protected:
  ~Session() = default;

 private:
  std::string holder_;
};

// Thread-safe.
class MemoryStore {
 public:
  struct Answer {
    bool granted = false;
    FencingToken token = {};    // if granted
    TimePoint lease_ends = {};  // of the current lease, whoever has it
    bool first_in_line = false;
  };

  // The store that all clients of memory://name share, for as long as somebody holds on to it. In a child made by
  // fork() it is another than in the parent.
  [[nodiscard]] static std::shared_ptr<MemoryStore> named(std::string_view name);

  // --- Sessions -----------------------------------------------------------------------------------------------------

  void attach(Session& session);
  // Forgets what the session waits for and watches. What it holds runs out by itself.
  void detach(Session& session) noexcept;

  // --- What clients ask ---------------------------------------------------------------------------------------------

  // The owner of the lock is granted again: same token, a new lease.
  Answer try_acquire(const LockRequest& request, Session& session, const Clock& clock);
  // The same, but waits in line if somebody else holds the lock.
  Answer enqueue(const LockRequest& request, Session& session, const Clock& clock);
  // A new lease from now, if the owner's current one is not over. Answers whether that was so.
  bool renew(const std::string& name, const OwnerId& owner, std::chrono::nanoseconds lease, const Clock& clock);
  // Afterwards this owner neither holds the lock nor waits for it. Answers whether it held it.
  bool release(const std::string& name, const OwnerId& owner, const Clock& clock);

  [[nodiscard]] LockInfo inspect(const std::string& name, const Clock& clock);
  [[nodiscard]] std::vector<LockInfo> list(const Clock& clock);  // sorted by name
  bool break_lock(const std::string& name, const Clock& clock);

  // Session::freed(the number) is called whenever the lock becomes free by release or break; the end of a lease goes
  // unnoticed until somebody asks.
  [[nodiscard]] std::uint64_t watch(const std::string& name, Session& session);
  void unwatch(const std::string& name, std::uint64_t watch);

  // --- For tests ----------------------------------------------------------------------------------------------------

  [[nodiscard]] Faults& faults() noexcept { return faults_; }
  // What would happen if the process of these clients died and the store knew at once: all that they hold, wait for and
  // watch is gone, and nothing that they send arrives any more.
  void kill_sessions(const std::string& holder, const Clock& clock);
  // How many owners hold this lock or wait for it.
  [[nodiscard]] std::size_t residue(const std::string& name, const Clock& clock);
  // How many names are remembered.
  [[nodiscard]] std::size_t size() const;

 private:
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
  [[nodiscard]] static LockInfo describe(const std::string& name, const Lock& lock, const Clock& clock);

  Faults faults_;
  mutable util::Mutex mutex_;
  std::unordered_map<std::string, Lock> locks_ DLOCK_GUARDED_BY(mutex_);
  std::vector<Session*> sessions_ DLOCK_GUARDED_BY(mutex_);
  std::uint64_t last_watch_ DLOCK_GUARDED_BY(mutex_) = 0;
  FencingToken floor_ DLOCK_GUARDED_BY(mutex_);  // no smaller than the token of any forgotten name
  std::size_t forget_above_ DLOCK_GUARDED_BY(mutex_) = 1024;
};

}  // namespace dlock::memory
