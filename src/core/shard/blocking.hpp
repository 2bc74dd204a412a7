// Blocking calls on top of the engine, and why they may not be made on its own thread.
#pragma once

#include <chrono>
#include <optional>
#include <system_error>

#include <dlock/duration.hpp>
#include <dlock/error.hpp>

#include "core/shard/client_context.hpp"
#include "util/event.hpp"

namespace dlock::detail {

// What a blocking call that would have to wait throws on the engine thread, which runs what it would wait for.
[[nodiscard]] inline Failure would_deadlock() {
  return {std::make_error_code(std::errc::resource_deadlock_would_occur),
          "a blocking call in a handler; use the asynchronous form, or another thread"};
}

// A request's answer is due within the response timeout; a little more lets the backend say itself why there is none.
[[nodiscard]] inline std::chrono::nanoseconds response_limit(const ClientContext& context) noexcept {
  const auto timeout = Duration(context.response_timeout).value();
  return timeout > forever.value() / 2 ? forever.value() : timeout + timeout / 4;
}

// Waits for the event, at most `limit`. On the engine thread it throws would_deadlock() unless the event is set.
inline bool block_until(const ClientContext& context, util::Event& event,
                        std::optional<std::chrono::nanoseconds> limit = std::nullopt) {
  if (event.is_set()) return true;
  if (context.engine->must_not_block()) throw Error(would_deadlock());
  return context.engine->wait(event, limit);
}

}  // namespace dlock::detail
