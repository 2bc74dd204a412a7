// Failures that several places report in the same words.
#pragma once

#include <cstdint>
#include <string>
#include <system_error>

#include <dlock/error.hpp>
#include <dlock/lock_kind.hpp>

namespace dlock::detail {

// As messages name it: lock "a".
[[nodiscard]] inline std::string described(LockKind kind, const std::string& name) {
  return std::string(to_string(kind)) + " \"" + name + "\"";
}

namespace failures {

[[nodiscard]] inline Failure closed() {
  return {errc::closed, "the client was closed"};
}
[[nodiscard]] inline Failure forked() {
  return {errc::closed, "the client belongs to the parent process; make a new one after fork()"};
}

[[nodiscard]] inline Failure events_dropped(std::uint64_t count) {
  return {std::make_error_code(std::errc::no_buffer_space),
          std::to_string(count) + " events were dropped, because the observer cannot keep up"};
}

}  // namespace failures

}  // namespace dlock::detail
