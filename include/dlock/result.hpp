// A value or the reason why there is none: what a handler of the service-provider interface is given.
#pragma once

#include <utility>
#include <variant>

#include <dlock/error.hpp>

namespace dlock {

// A value of type T, or a Failure.
template <class T>
class Result {
 public:
  Result(T value) : content_(std::move(value)) {}            // NOLINT(google-explicit-constructor)
  Result(Failure failure) : content_(std::move(failure)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const noexcept { return content_.index() == 0; }
  // Only where ok().
  [[nodiscard]] T& value() { return std::get<0>(content_); }
  [[nodiscard]] const T& value() const { return std::get<0>(content_); }
  [[nodiscard]] const Failure& failure() const { return std::get<1>(content_); }

 private:
  std::variant<T, Failure> content_;
};

}  // namespace dlock
