// Failures that several places report in the same words.
#pragma once

#include <dlock/error.hpp>

namespace dlock::detail::failures {

[[nodiscard]] inline Failure closed() {
  return {errc::closed, "the client was closed"};
}
[[nodiscard]] inline Failure forked() {
  return {errc::closed, "the client belongs to the parent process; make a new one after fork()"};
}

}  // namespace dlock::detail::failures
