// with_lock() for locks of all kinds.
#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <utility>

#include <dlock/error.hpp>
#include <dlock/lease.hpp>
#include <dlock/options.hpp>

namespace dlock {

namespace detail {

template <class F>
auto with_lease(Lease lease, F&& f) {
  const auto end = [](Lease& held) {
    if (!held.release()) throw Error(errc::lost, "lock \"" + held.name() + "\" was lost while it was in use");
  };
  const Lease& held = lease;
  using Result = std::invoke_result_t<F, const Lease&>;
  if constexpr (std::is_void_v<Result>) {
    std::invoke(std::forward<F>(f), held);
    end(lease);
  } else {
    auto result = std::invoke(std::forward<F>(f), held);
    end(lease);
    return result;
  }
}

}  // namespace detail

// Runs f(lease) while holding the lock (a DistributedLock, a Semaphore, or a ReadWriteLock to write) and releases it;
// returns what f returns. Throws what acquire(), f and release() throw, or Error(lost) if the lease was lost before f
// ended normally: success means "held throughout".
//
//   int rows = dlock::with_lock(lock, {.wait = 5s}, [&](const dlock::Lease& lease) { return copy(lease.token()); });
template <class Lock, class F>
auto with_lock(Lock& lock, const AcquireOptions& options, F&& f) {
  return detail::with_lease(lock.acquire(options), std::forward<F>(f));
}

}  // namespace dlock
