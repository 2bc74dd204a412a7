// MultiLock: several locks as one, of one client or of several.
//
//   dlock::MultiLock both = client.multi_lock({"accounts/1", "accounts/2"});  // nothing is sent yet
//   dlock::MultiLease leases = both.acquire({.wait = 5s});                     // both, or none; throws dlock::Error
//   transfer(leases.token(0), leases.token(1));                                // in the order of the names
//   std::scoped_lock guard(both);                                              // it is a Cpp17TimedLockable, too
//
// The locks are taken one after the other, always in the same order, whatever the order in which they were named: by
// name, byte by byte, and locks of one name by where their clients go (the backend, hosts and path of the URL). So two
// programs that need the same locks never wait for each other in a circle, as long as all of them use a MultiLock, and
// hold no other lock while they acquire one. A program that takes the same locks one by one, in an order of its own,
// can still be in a deadlock with them; give it a deadline. Where locks of one name on several services are taken
// together, all programs write hosts and ports in the same way.
//
// Where the service can (capabilities().most_at_once), one request asks for all locks of a client first, without
// waiting, and gets all or nothing. If one of them is held, they are taken one after the other.
//
// All or nothing: when one cannot be had, or one of the first is lost before the last is got, all are given back.
//
//   acquire of lock k   | what became of it           | the others                              | the caller gets
//   --------------------+-----------------------------+-----------------------------------------+-------------------
//   granted             | held and renewed            | lock k + 1 is asked for                 | after the last: all
//   busy until the end  | nothing is left of it       | given back, in reverse order            | timed_out, nullopt
//   failed, cancelled   | nothing is left of it       | given back, in reverse order            | that error
//   waiting             | given up                    | one was lost: the rest is given back    | lost
//
// May be used by many threads at once, and destroyed while an asynchronous acquire is under way. Works as long as the
// clients live. Not reentrant. Blocking functions called on an engine thread (in a handler) throw
// std::errc::resource_deadlock_would_occur unless the backend answers at once. On a moved-from one only destruction and
// assignment are defined.
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
  // Of locks of one client or of several, of any backends; Client::multi_lock() does it for names of one client. Throws
  // Error(invalid_argument) where there are none, and where two are the same lock: one name, and clients that go to the
  // same place. Parameters of the URL are not looked at: the same name under two prefixes of one server counts as twice
  // the same. Leases that lock() left in the locks are released; their defaults are not used.
  explicit MultiLock(std::vector<DistributedLock> locks);
  MultiLock(MultiLock&&) noexcept;
  // Releases the leases that lock() left in this object.
  MultiLock& operator=(MultiLock&&) noexcept;
  ~MultiLock();

  // In the order in which the locks were named.
  [[nodiscard]] const std::vector<std::string>& names() const noexcept;

  // --- Leases -------------------------------------------------------------------------------------------------------

  // Waits for all locks, at most options.wait in all (default: without limit). Throws what DistributedLock::acquire()
  // throws; the text names the lock. Besides, lost: a lock that it had got was lost while it waited for another, so
  // that there is nothing to rely on; try again. Returns within the wait plus one round trip for all at once, one for
  // each lock, and one to give back. Giving back waits for the services' word at most ClientOptions::close_timeout, and
  // goes on in the background. The overload reports the same in ec and returns an empty lease.
  MultiLease acquire(const AcquireOptions& options = {});
  MultiLease acquire(const AcquireOptions& options, std::error_code& ec);

  // One try of all locks at once where the service can, else of one after the other until one is busy. nullopt:
  // somebody else holds one of them.
  [[nodiscard]] std::optional<MultiLease> try_acquire(AcquireOptions options = {});
  [[nodiscard]] std::optional<MultiLease> try_acquire(AcquireOptions options, std::error_code& ec);

  // Waits at most `wait` in all; options.wait is ignored. nullopt: somebody else held one of them when it ended.
  [[nodiscard]] std::optional<MultiLease> try_acquire_for(Duration wait, AcquireOptions options = {});
  [[nodiscard]] std::optional<MultiLease> try_acquire_for(Duration wait, AcquireOptions options, std::error_code& ec);

  // Acquires without blocking: the handler runs exactly once, also when a client is closed, as
  // handler(std::error_code, MultiLease) or, if it does not take that, as handler(const Failure&, MultiLease). It runs
  // on the engine thread of the client whose lock was asked for last; where that client was closed before, of the one
  // before it. After a failure the others may still be on their way back when it runs. An acquire costs no thread.
  template <class Handler>
  void async_acquire(const AcquireOptions& options, Handler&& handler) {
    start_acquire(options, detail::completion<MultiLease>(std::forward<Handler>(handler)));
  }

  // --- Cpp17TimedLockable -------------------------------------------------------------------------------------------
  // As in DistributedLock: each thread's lease is kept in this object until that thread calls unlock().

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
  // Releases this thread's lease, bounded in time like ~MultiLease. No effect if this thread holds none.
  void unlock() noexcept;

  // The lease that this thread's lock() took; empty if there is none. Valid until this thread's unlock().
  [[nodiscard]] const MultiLease& lease() const& noexcept;
  // NOLINTNEXTLINE(modernize-use-nodiscard): nobody can call it
  const MultiLease& lease() const&& = delete;

  // Options that lock(), try_lock() and their timed forms use (their `wait` is given by the call).
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
