// with_lock() for locks of all kinds.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>

#include <dlock/error.hpp>
#include <dlock/lease.hpp>
#include <dlock/options.hpp>

namespace dlock {

namespace detail {

// The lock or locks of a lease, as a message names them.
[[nodiscard]] inline std::string in_words(const Lease& lease) {
  return "lock \"" + lease.name() + "\"";
}
template <class SeveralLeases>
[[nodiscard]] std::string in_words(const SeveralLeases& leases) {
  std::string words;
  for (std::size_t i = 0; i < leases.size(); ++i) words += (i == 0 ? "" : ", or ") + in_words(leases[i]);
  return words;
}

template <class AnyLease, class F>
auto run_and_release(AnyLease lease, F&& f) {
  const AnyLease& held = lease;
  const auto release = [&lease] {
    if (!lease.release()) throw Error(errc::lost, in_words(lease) + " was lost while it was in use");
  };
  using Result = std::invoke_result_t<F, const AnyLease&>;
  if constexpr (std::is_void_v<Result>) {
    std::invoke(std::forward<F>(f), held);
    release();
  } else {
    auto result = std::invoke(std::forward<F>(f), held);
    release();
    return result;
  }
}

}  // namespace detail

// Runs f(lease) while holding the lock (a DistributedLock, a Semaphore, a MultiLock, or a ReadWriteLock to write) and
// releases it; returns what f returns. Throws what acquire(), f and release() throw, or Error(lost) if the lease was
// lost before f ended normally: success means "held throughout".
//
//   int rows = dlock::with_lock(lock, {.wait = 5s}, [&](const dlock::Lease& lease) { return copy(lease.token()); });
template <class Lock, class F>
auto with_lock(Lock& lock, const AcquireOptions& options, F&& f) {
  return detail::run_and_release(lock.acquire(options), std::forward<F>(f));
}

}  // namespace dlock
