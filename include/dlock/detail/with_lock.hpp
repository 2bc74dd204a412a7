// Implementation of dlock::with_lock(); include <dlock/lock.hpp>.
#pragma once

#include <functional>
#include <type_traits>
#include <utility>

#include <dlock/error.hpp>
#include <dlock/lock.hpp>

namespace dlock {

template <class F>
auto with_lock(DistributedLock& lock, const AcquireOptions& options, F&& f) {
  Lease lease = lock.acquire(options);
  const Lease& held = lease;
  using Result = std::invoke_result_t<F, const Lease&>;
  if constexpr (std::is_void_v<Result>) {
    std::invoke(std::forward<F>(f), held);
    if (!lease.release()) throw Error(errc::lost, "lock \"" + lease.name() + "\" was lost while it was in use");
  } else {
    auto result = std::invoke(std::forward<F>(f), held);
    if (!lease.release()) throw Error(errc::lost, "lock \"" + lease.name() + "\" was lost while it was in use");
    return result;
  }
}

}  // namespace dlock
