// ReadWriteLock: a name that many readers may hold together, or one writer alone.
//
//   dlock::ReadWriteLock prices = client.make_read_write_lock("prices");  // nothing is sent yet
//   dlock::Lease reading = prices.acquire_shared();                       // waits while there is a writer
//   dlock::Lease writing = prices.acquire();                              // waits until it is alone
//   std::shared_lock reader(prices);                                      // it is a Cpp17SharedTimedLockable, too
//
//   held           | acquire_shared()       | acquire()
//   ---------------+------------------------+------------
//   free           | enters                 | enters
//   to read        | enters, unless others  | waits
//                  | wait before it         |
//   to write       | waits                  | waits
//
// If the service serves waiters in the order of their arrival (Capabilities::fair), adjacent waiting readers enter
// together, and later arrivals never overtake earlier ones: a try to read is busy while a writer waits. Otherwise a
// waiting writer keeps new readers out with a mark that is at most a few tries old. In both cases a stream of readers
// does not keep a writer out.
//
// A lease cannot change its kind: release it and acquire again. Tokens: a writer's token is greater than all earlier
// tokens of the name, a reader's greater than every earlier writer's. The protected resource should refuse a write with
// a smaller token than any it has seen, and a read with a smaller token than the greatest writer's. What lock.hpp says
// about threads, handlers and moved-from locks, and about functions of the same name, also applies here.
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
class LockImpl;
}

class ReadWriteLock {
 public:
  ReadWriteLock(ReadWriteLock&&) noexcept;
  // Releases the leases that lock() and lock_shared() left in this object.
  ReadWriteLock& operator=(ReadWriteLock&&) noexcept;
  ~ReadWriteLock();

  [[nodiscard]] const std::string& name() const noexcept;

  // --- To write: alone ----------------------------------------------------------------------------------------------
  // As in DistributedLock.

  Lease acquire(const AcquireOptions& options = {});
  Lease acquire(const AcquireOptions& options, std::error_code& ec);
  [[nodiscard]] std::optional<Lease> try_acquire(AcquireOptions options = {});
  [[nodiscard]] std::optional<Lease> try_acquire(AcquireOptions options, std::error_code& ec);
  [[nodiscard]] std::optional<Lease> try_acquire_for(Duration wait, AcquireOptions options = {});
  [[nodiscard]] std::optional<Lease> try_acquire_for(Duration wait, AcquireOptions options, std::error_code& ec);
  template <class Handler>
  void async_acquire(const AcquireOptions& options, Handler&& handler) {
    start_acquire(options, detail::completion<Lease>(std::forward<Handler>(handler)));
  }

  // --- To read: together with others --------------------------------------------------------------------------------
  // As in DistributedLock.

  Lease acquire_shared(const AcquireOptions& options = {});
  Lease acquire_shared(const AcquireOptions& options, std::error_code& ec);
  [[nodiscard]] std::optional<Lease> try_acquire_shared(AcquireOptions options = {});
  [[nodiscard]] std::optional<Lease> try_acquire_shared(AcquireOptions options, std::error_code& ec);
  [[nodiscard]] std::optional<Lease> try_acquire_shared_for(Duration wait, AcquireOptions options = {});
  [[nodiscard]] std::optional<Lease> try_acquire_shared_for(Duration wait, AcquireOptions options, std::error_code& ec);
  template <class Handler>
  void async_acquire_shared(const AcquireOptions& options, Handler&& handler) {
    start_acquire_shared(options, detail::completion<Lease>(std::forward<Handler>(handler)));
  }

  // --- SharedTimedMutex ---------------------------------------------------------------------------------------------
  // This object keeps each thread's lease, of either kind, until that thread unlocks it. If the thread already holds
  // either, lock() and lock_shared() throw std::errc::resource_deadlock_would_occur, and the tries return false.
  // unlock() releases the lease from lock(), unlock_shared() the lease from lock_shared(); the wrong one has no effect.
  // None of them compiles on a temporary.

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
  void unlock() noexcept;

  void lock_shared() &;
  void lock_shared() && = delete;
  [[nodiscard]] bool try_lock_shared() &;
  bool try_lock_shared() && = delete;
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_shared_for(const std::chrono::duration<Rep, Period>& wait) & {
    return try_lock_shared_within(wait);
  }
  template <class Rep, class Period>
  bool try_lock_shared_for(const std::chrono::duration<Rep, Period>& wait) && = delete;
  template <class AnyClock, class AnyDuration>
  [[nodiscard]] bool try_lock_shared_until(const std::chrono::time_point<AnyClock, AnyDuration>& deadline) & {
    return try_lock_shared_within(detail::time_left(deadline, AnyClock::now()));
  }
  template <class AnyClock, class AnyDuration>
  bool try_lock_shared_until(const std::chrono::time_point<AnyClock, AnyDuration>& deadline) && = delete;
  void unlock_shared() noexcept;

  // The lease from this thread's lock() or lock_shared(); empty if there is none. Valid until it is unlocked.
  [[nodiscard]] const Lease& lease() const& noexcept;
  // NOLINTNEXTLINE(modernize-use-nodiscard): nobody can call it
  const Lease& lease() const&& = delete;

  // The options of lock(), lock_shared(), their tries and timed forms. The call itself sets `wait`.
  void set_defaults(const AcquireOptions& options) &;
  void set_defaults(const AcquireOptions& options) && = delete;
  [[nodiscard]] AcquireOptions defaults() const;

 private:
  friend class Client;
  explicit ReadWriteLock(std::unique_ptr<detail::LockImpl> impl) noexcept;
  void start_acquire(const AcquireOptions& options, detail::Completion<Lease> handler);
  void start_acquire_shared(const AcquireOptions& options, detail::Completion<Lease> handler);
  bool try_lock_within(Duration wait);
  bool try_lock_shared_within(Duration wait);

  std::unique_ptr<detail::LockImpl> impl_;
};

// Runs f(lease) while it holds the lock to read, as with_lock() does with the lock to write.
template <class F>
auto with_shared_lock(ReadWriteLock& lock, const AcquireOptions& options, F&& f) {
  return detail::run_and_release(lock.acquire_shared(options), std::forward<F>(f));
}

}  // namespace dlock
