// A value or the reason why there is none, for handlers of the service-provider interface.
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
  // Only if ok().
  [[nodiscard]] T& value() { return std::get<0>(content_); }
  [[nodiscard]] const T& value() const { return std::get<0>(content_); }
  [[nodiscard]] const Failure& failure() const { return std::get<1>(content_); }

 private:
  std::variant<T, Failure> content_;
};

}  // namespace dlock
