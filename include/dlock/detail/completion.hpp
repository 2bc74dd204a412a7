// The handlers of async_acquire() and async_release(); include <dlock/lock.hpp>.
#pragma once

#include <functional>
#include <memory>
#include <system_error>
#include <type_traits>
#include <utility>

#include <dlock/error.hpp>

namespace dlock::detail {

template <class Result>
using Completion = std::function<void(const Failure&, Result)>;

// A handler that takes either the code alone or the whole failure. One that would take both, such as a generic lambda,
// gets the code: what it does with that may not compile for a Failure. The handler need not be copyable.
template <class Result, class Handler>
[[nodiscard]] Completion<Result> completion(Handler&& handler) {
  using Kept = std::decay_t<Handler>;
  if constexpr (std::is_invocable_v<Kept&, std::error_code, Result>) {
    return [kept = std::make_shared<Kept>(std::forward<Handler>(handler))](const Failure& failure, Result result) {
      (void)std::invoke(*kept, failure.code, std::move(result));  // nothing uses its result
    };
  } else if constexpr (std::is_invocable_v<Kept&, const Failure&, Result>) {
    return [kept = std::make_shared<Kept>(std::forward<Handler>(handler))](const Failure& failure, Result result) {
      (void)std::invoke(*kept, failure, std::move(result));
    };
  } else {
    static_assert(
        std::is_invocable_v<Kept&, const Failure&, Result>,
        "the handler must take (std::error_code, R) or (const dlock::Failure&, R), where R is dlock::Lease (of a "
        "MultiLock: dlock::MultiLease) for async_acquire() and bool for async_release()");
    return {};
  }
}

}  // namespace dlock::detail
