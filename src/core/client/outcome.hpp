// The ways in which an acquire tells a caller that waited how it ended. Each calls acquire(failure), which answers with
// a lease, or with an empty one and a failure that has a code; timed_out means that another lease held the lock.
#pragma once

#include <optional>
#include <system_error>

#include <dlock/error.hpp>

namespace dlock::detail {

template <class Acquire>
auto lease_or_throw(Acquire acquire) {
  Failure failure;
  auto lease = acquire(failure);
  if (failure.code) throw Error(failure);
  return lease;
}

template <class Acquire>
auto lease_or_code(Acquire acquire, std::error_code& ec) {
  Failure failure;
  auto lease = acquire(failure);
  ec = failure.code;
  return lease;
}

// nullopt: another lease held it.
template <class Acquire>
auto lease_unless_busy(Acquire acquire) {
  Failure failure;
  std::optional lease(acquire(failure));
  if (!failure.code) return lease;
  if (failure.code != errc::timed_out) throw Error(failure);
  lease.reset();
  return lease;
}

template <class Acquire>
auto lease_unless_busy(Acquire acquire, std::error_code& ec) {
  Failure failure;
  std::optional lease(acquire(failure));
  ec = failure.code == errc::timed_out ? std::error_code() : failure.code;
  if (failure.code) lease.reset();
  return lease;
}

}  // namespace dlock::detail
