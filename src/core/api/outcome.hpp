// The end of a blocking acquire, and the ways in which the functions of the API report it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <dlock/error.hpp>
#include <dlock/options.hpp>

namespace dlock::detail {

// The failure of a try whose options have a different wait than its own: zero, or the argument of its _for form.
// form: the name of the try without "_for".
[[nodiscard]] inline std::optional<Failure> problem_with_wait(Duration wait, const AcquireOptions& options,
                                                              std::string_view form = "try_acquire") {
  if (options.wait == wait || options.wait == forever) return std::nullopt;
  const std::string name(form);
  return Failure{errc::invalid_argument,
                 wait == Duration() ? "wait: " + name + "() does not wait; use " + name + "_for() or " +
                                          name.substr(std::string_view("try_").size()) + "()"
                                    : "wait: " + name + "_for() waits for its argument; the options say otherwise"};
}

// How a blocking acquire ended: with a lease, or with a failure; timed_out means that another lease held the lock.
template <class AnyLease>
struct Outcome {
  AnyLease lease = {};
  Failure failure = {};

  [[nodiscard]] AnyLease or_throw() && {
    if (failure.code) throw Error(failure);
    return std::move(lease);
  }
  [[nodiscard]] AnyLease or_code(std::error_code& ec) && {
    ec = failure.code;
    return std::move(lease);
  }
  // nullopt: another lease held it.
  [[nodiscard]] std::optional<AnyLease> unless_busy() && {
    if (failure.code && failure.code != errc::timed_out) throw Error(failure);
    return if_held();
  }
  [[nodiscard]] std::optional<AnyLease> unless_busy(std::error_code& ec) && {
    ec = failure.code == errc::timed_out ? std::error_code() : failure.code;
    return if_held();
  }

 private:
  [[nodiscard]] std::optional<AnyLease> if_held() {
    return failure.code ? std::nullopt : std::optional(std::move(lease));
  }
};

}  // namespace dlock::detail
