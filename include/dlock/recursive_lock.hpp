// RecursiveLock: a lock that its holding thread may acquire again, over any backend.
//
//   dlock::RecursiveLock lock(client.make_lock("orders/42"));
//   std::lock_guard outer(lock);
//   { std::lock_guard inner(lock); }      // same thread: only the count moves, nothing is sent
//
// The hold count is local to this process; the service sees one lease per thread. Meets Cpp17TimedLockable. May be used
// by many threads at once, except move and destruction. On a moved-from lock only destruction and assignment are
// defined. A first lock() or try on the engine thread (in a handler) throws std::errc::resource_deadlock_would_occur.
//
//   this thread      | lock()                  | unlock()
//   -----------------+-------------------------+-------------------------------------------
//   holds nothing    | acquires, count = 1     | no effect
//   holds n          | count = n + 1           | count = n - 1, releases at 0
//   lost its lease   | throws Error(lost)      | count = n - 1, forgets the lease at 0
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

#include <dlock/lock.hpp>

namespace dlock {

class RecursiveLock {
 public:
  explicit RecursiveLock(DistributedLock lock);
  RecursiveLock(RecursiveLock&&) noexcept;
  RecursiveLock& operator=(RecursiveLock&&) noexcept;
  ~RecursiveLock();

  // Blocks like DistributedLock::acquire() if this thread holds nothing. Throws Error, like the tries: also errc::lost
  // if this thread's lease was lost and is not yet fully unlocked. None of them compiles on a temporary, which would
  // release the lease at once.
  void lock() &;
  void lock() && = delete;
  [[nodiscard]] bool try_lock() &;
  bool try_lock() && = delete;
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period>& wait) & {
    return try_lock_within(wait);
  }
  template <class Rep, class Period>
  bool try_lock_for(const std::chrono::duration<Rep, Period>& wait) && = delete;
  template <class AnyClock, class AnyDuration>
  [[nodiscard]] bool try_lock_until(const std::chrono::time_point<AnyClock, AnyDuration>& deadline) & {
    return try_lock_within(detail::time_left(deadline, AnyClock::now()));
  }
  template <class AnyClock, class AnyDuration>
  bool try_lock_until(const std::chrono::time_point<AnyClock, AnyDuration>& deadline) && = delete;
  // Never throws; returns in bounded time like ~Lease.
  void unlock() noexcept;

  // How many times this thread has locked it and not unlocked it.
  [[nodiscard]] std::size_t hold_count() const noexcept;
  // This thread's lease; empty if there is none. Valid until the unlock() that brings the count to 0.
  [[nodiscard]] const Lease& lease() const& noexcept;
  // NOLINTNEXTLINE(modernize-use-nodiscard): nobody can call it
  const Lease& lease() const&& = delete;
  [[nodiscard]] const std::string& name() const noexcept;

 private:
  class Impl;
  bool try_lock_within(Duration wait);
  std::unique_ptr<Impl> impl_;
};

}  // namespace dlock
