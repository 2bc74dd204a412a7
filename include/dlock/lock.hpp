// DistributedLock: a name that can be locked.
//
//   dlock::DistributedLock lock = client.make_lock("orders/42");  // nothing is sent yet
//   dlock::Lease lease = lock.acquire();                           // waits; throws dlock::Error
//   if (auto lease = lock.try_acquire_for(2s)) { ... }             // nullopt: another owner holds it
//   std::scoped_lock both(lock_a, lock_b);                         // it is a Cpp17TimedLockable, too
//
// Not reentrant: a second acquire of the same name waits for the first, even on the same thread; see RecursiveLock. May
// be used by many threads at once. On a moved-from lock only destruction and assignment are defined. A lease does not
// need its lock object, only the client: client.make_lock("orders/42").acquire() is fine. Blocking functions called on
// the engine thread (in a handler) throw std::errc::resource_deadlock_would_occur, on every backend, and do nothing.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <dlock/detail/completion.hpp>
#include <dlock/detail/with_lock.hpp>
#include <dlock/duration.hpp>
#include <dlock/lease.hpp>
#include <dlock/options.hpp>

namespace dlock {

namespace detail {
class ClientCore;
class LockImpl;
}  // namespace detail

class DistributedLock {
 public:
  DistributedLock(DistributedLock&&) noexcept;
  // Releases the leases that lock() left in this object.
  DistributedLock& operator=(DistributedLock&&) noexcept;
  ~DistributedLock();

  [[nodiscard]] const std::string& name() const noexcept;

  // --- Leases -------------------------------------------------------------------------------------------------------

  // Waits for the lock, at most options.wait (default: without limit). Throws Error: timed_out if another owner held it
  // the whole time, unavailable if the service was unreachable, cancelled, access_denied, invalid_argument,
  // unsupported, protocol, closed. Always returns within the wait plus one round trip. The overload reports the same in
  // ec and returns an empty lease.
  Lease acquire(const AcquireOptions& options = {});
  Lease acquire(const AcquireOptions& options, std::error_code& ec);

  // One try, one round trip. nullopt: another owner holds the lock. Errors as above. An unreachable service is an
  // error, not "busy". Also invalid_argument if options.wait is set to more than zero.
  [[nodiscard]] std::optional<Lease> try_acquire(AcquireOptions options = {});
  [[nodiscard]] std::optional<Lease> try_acquire(AcquireOptions options, std::error_code& ec);

  // Waits at most `wait`. nullopt: another owner held the lock the whole time. Errors as above, and invalid_argument if
  // options.wait is set to another value than `wait`.
  [[nodiscard]] std::optional<Lease> try_acquire_for(Duration wait, AcquireOptions options = {});
  [[nodiscard]] std::optional<Lease> try_acquire_for(Duration wait, AcquireOptions options, std::error_code& ec);

  // Acquires without blocking. The handler runs on the engine thread, exactly once, even if the client is closed. dlock
  // calls it as handler(std::error_code, Lease) or, if it cannot be called so, as handler(const Failure&, Lease) with
  // the code and text of the Error that acquire() throws. It also reports wrong options to the handler. A waiting
  // acquire costs no thread.
  template <class Handler>
  void async_acquire(const AcquireOptions& options, Handler&& handler) {
    start_acquire(options, detail::completion<Lease>(std::forward<Handler>(handler)));
  }

  // --- Cpp17TimedLockable -------------------------------------------------------------------------------------------
  // This object keeps each thread's lease until that thread calls unlock(). As with std::mutex, lock and unlock belong
  // on the same thread. If the thread already holds the lock, lock() throws std::errc::resource_deadlock_would_occur
  // and try_lock() returns false. None of them compiles on a temporary lock, which would release the lease at once.

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
  // Releases this thread's lease, in bounded time like ~Lease. No effect if this thread holds none.
  void unlock() noexcept;

  // The lease from this thread's lock(), for its token and loss signal; empty if there is none. Valid until this
  // thread's unlock().
  [[nodiscard]] const Lease& lease() const& noexcept;
  // NOLINTNEXTLINE(modernize-use-nodiscard): nobody can call it
  const Lease& lease() const&& = delete;

  // The options of lock(), try_lock() and their timed forms, also through a RecursiveLock. The call itself sets `wait`.
  void set_defaults(const AcquireOptions& options) &;
  void set_defaults(const AcquireOptions& options) && = delete;
  [[nodiscard]] AcquireOptions defaults() const;

 private:
  friend class Client;
  friend class MultiLock;
  explicit DistributedLock(std::unique_ptr<detail::LockImpl> impl) noexcept;
  void start_acquire(const AcquireOptions& options, detail::Completion<Lease> handler);
  bool try_lock_within(Duration wait);

  std::unique_ptr<detail::LockImpl> impl_;
};

}  // namespace dlock
