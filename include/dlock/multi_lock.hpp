// MultiLock: several locks as one, of one client or of several.
//
//   dlock::MultiLock both = client.make_multi_lock({"accounts/1", "accounts/2"});  // nothing is sent yet
//   dlock::MultiLease leases = both.acquire({.wait = 5s});                         // both, or none; throws Error
//   transfer(leases.token(0), leases.token(1));                                    // in the order of the names
//   std::scoped_lock guard(both);                                                  // it is a Cpp17TimedLockable, too
//
// A MultiLock acquires its locks one after the other, always in the same order: by name, byte by byte, and locks of one
// name by the service of their clients (backend, hosts and path of the URL). The order in which the program names them
// does not matter. So programs that need the same locks never deadlock, as long as all of them use a MultiLock and hold
// no other lock while they acquire one. A program that acquires the same locks one by one in another order can still
// deadlock with them: give it a deadline. If programs lock one name on several services together, all of them must
// write hosts and ports in the same way.
//
// All or nothing: if one acquire fails, or an acquired lock is lost before the last is acquired, all are released.
//
//   acquire of lock k   | its outcome                 | the others                              | the caller gets
//   --------------------+-----------------------------+-----------------------------------------+-------------------
//   granted             | held and renewed            | lock k + 1 is asked for                 | after the last: all
//   busy until the end  | nothing is left of it       | released, in reverse order              | timed_out, nullopt
//   failed, cancelled   | nothing is left of it       | released, in reverse order              | that error
//   waiting             | cancelled                   | one was lost: the rest is released      | lost
//
// May be used by many threads at once, and destroyed while an asynchronous acquire is in progress. Works during the
// lifetime of its clients. Not reentrant. Blocking functions called on an engine thread (in a handler) throw
// std::errc::resource_deadlock_would_occur and do nothing. On a moved-from one only destruction and assignment are
// defined.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <dlock/detail/completion.hpp>
#include <dlock/duration.hpp>
#include <dlock/lock.hpp>
#include <dlock/multi_lease.hpp>
#include <dlock/options.hpp>

namespace dlock {

namespace detail {
class MultiLockImpl;
}

class MultiLock {
 public:
  // Locks of one or several clients, of any backends. Client::make_multi_lock() does the same for names of one client.
  // Throws Error(invalid_argument) if there are no locks, or if two are the same lock: one name, and clients of the
  // same service. It ignores parameters of the URL, so the same name under two prefixes of one server counts as the
  // same lock. Releases the leases that lock() left in the locks, and ignores their defaults.
  explicit MultiLock(std::vector<DistributedLock> locks);
  MultiLock(MultiLock&&) noexcept;
  // Releases the leases that lock() left in this object.
  MultiLock& operator=(MultiLock&&) noexcept;
  ~MultiLock();

  // In the order in which the program named the locks.
  [[nodiscard]] const std::vector<std::string>& names() const noexcept;

  // --- Leases -------------------------------------------------------------------------------------------------------

  // Waits for all locks, at most options.wait in all (default: without limit). Throws what DistributedLock::acquire()
  // throws; the text names the lock. Also throws lost: it lost an acquired lock while it waited for another one; try
  // again. Returns within the wait plus one round trip per lock, and one for the release. The release waits for the
  // services' answers at most ClientOptions::close_timeout, and continues in the background. The overload reports the
  // same in ec and returns an empty lease.
  MultiLease acquire(const AcquireOptions& options = {});
  MultiLease acquire(const AcquireOptions& options, std::error_code& ec);

  // One try of each lock, one after the other, until one is busy. nullopt: another owner holds one of them.
  [[nodiscard]] std::optional<MultiLease> try_acquire(AcquireOptions options = {});
  [[nodiscard]] std::optional<MultiLease> try_acquire(AcquireOptions options, std::error_code& ec);

  // Waits at most `wait` in total. nullopt: another owner held one of them at the end. As with a DistributedLock, the
  // tries refuse an options.wait that says otherwise.
  [[nodiscard]] std::optional<MultiLease> try_acquire_for(Duration wait, AcquireOptions options = {});
  [[nodiscard]] std::optional<MultiLease> try_acquire_for(Duration wait, AcquireOptions options, std::error_code& ec);

  // Acquires without blocking. The handler runs exactly once, even if a client is closed, as handler(std::error_code,
  // MultiLease) or, if it cannot be called so, as handler(const Failure&, MultiLease). It runs on the engine thread of
  // the client whose lock was requested last; if that client is closed, of the one before it. After a failure, the
  // release of the others may still be in progress when it runs. An acquire costs no thread.
  template <class Handler>
  void async_acquire(const AcquireOptions& options, Handler&& handler) {
    start_acquire(options, detail::completion<MultiLease>(std::forward<Handler>(handler)));
  }

  // --- Cpp17TimedLockable -------------------------------------------------------------------------------------------
  // As in DistributedLock: this object keeps each thread's lease until that thread calls unlock().

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
  // Releases this thread's lease, in bounded time like ~MultiLease. No effect if this thread holds none.
  void unlock() noexcept;

  // The lease from this thread's lock(); empty if there is none. Valid until this thread's unlock().
  [[nodiscard]] const MultiLease& lease() const& noexcept;
  // NOLINTNEXTLINE(modernize-use-nodiscard): nobody can call it
  const MultiLease& lease() const&& = delete;

  // The options of lock(), try_lock() and their timed forms. The call itself sets `wait`.
  void set_defaults(const AcquireOptions& options) &;
  void set_defaults(const AcquireOptions& options) && = delete;
  [[nodiscard]] AcquireOptions defaults() const;

 private:
  void start_acquire(const AcquireOptions& options, detail::Completion<MultiLease> handler);
  bool try_lock_within(Duration wait);

  std::unique_ptr<detail::MultiLockImpl> impl_;
};

// Runs f(leases) while holding all locks and releases them, as with_lock() of a DistributedLock does. Throws
// Error(lost) if one was lost before f ended normally.
//
//   dlock::with_lock(both, {.wait = 5s}, [&](const dlock::MultiLease& leases) { transfer(leases); });
template <class F>
auto with_lock(MultiLock& lock, const AcquireOptions& options, F&& f) {
  return detail::run_and_release(lock.acquire(options), std::forward<F>(f));
}

}  // namespace dlock
