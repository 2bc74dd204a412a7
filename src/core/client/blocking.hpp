// Blocking calls on top of the engine, and why they may not be made on its own thread.
#pragma once

#include <chrono>
#include <optional>
#include <system_error>

#include <dlock/duration.hpp>
#include <dlock/error.hpp>

#include "core/client/client_context.hpp"
#include "util/event.hpp"

namespace dlock::detail {

// The failure of a blocking call on the engine thread, which runs what the call would wait for. Even if the backend
// would answer at once: otherwise a program that works with one backend would fail with another.
[[nodiscard]] inline Failure would_deadlock() {
  return {std::make_error_code(std::errc::resource_deadlock_would_occur),
          "a blocking call in a handler; use the asynchronous form, or another thread"};
}

// A quarter more than the response timeout, so that the backend's own failure arrives first.
[[nodiscard]] inline std::chrono::nanoseconds response_limit(const ClientContext& context) noexcept {
  const auto timeout = Duration(context.response_timeout).value();
  return timeout > forever.value() / 2 ? forever.value() : timeout + timeout / 4;
}

// The result of the call; if it throws Error, an empty result, and the code in `ec`.
template <class Call>
[[nodiscard]] auto value_or_code(Call call, std::error_code& ec) -> decltype(call()) {
  try {
    ec.clear();
    return call();
  } catch (const Error& e) {
    ec = e.code();
  }
  return {};
}

}  // namespace dlock::detail
