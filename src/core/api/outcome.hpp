// The ways in which an acquire tells a caller that waited how it ended. Each calls acquire(failure), which answers with
// a lease, or with an empty one and a failure that has a code; timed_out means that another lease held the lock.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include <dlock/error.hpp>
#include <dlock/options.hpp>

namespace dlock::detail {

// Why a try that waits for so long, zero or the argument of its _for form, refuses these options: they have another
// wait. `form` is its name without "_for".
[[nodiscard]] inline std::optional<Failure> problem_with_wait(Duration wait, const AcquireOptions& options,
                                                              std::string_view form = "try_acquire") {
  if (options.wait == wait || options.wait == forever) return std::nullopt;
  const std::string name(form);
  return Failure{errc::invalid_argument,
                 wait == Duration() ? "wait: " + name + "() does not wait; use " + name + "_for() or " +
                                          name.substr(std::string_view("try_").size()) + "()"
                                    : "wait: " + name + "_for() waits for its argument; the options say otherwise"};
}

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
