// Settings that reach the suite through environment variables.
#pragma once

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <string_view>

#include "tests/support/sanitizers.hpp"

namespace dlock::conformance {

// A positive number of milliseconds; anything else counts as unset.
inline std::chrono::milliseconds milliseconds_from_environment(const char* variable, std::chrono::milliseconds unset) {
  const char* text = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): the suite never changes the environment
  if (text == nullptr) return unset;
  const std::string_view digits(text);
  long value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value <= 0) return unset;
  return std::chrono::milliseconds(value);
}

// The length of leases that tests let run out in real time.
inline std::chrono::milliseconds short_lease() {
  return milliseconds_from_environment("DLOCK_CONFORMANCE_LEASE_MS", std::chrono::milliseconds(300));
}

// The same for sessions (ClientOptions::lease): no service grants much shorter ones, and on a busy machine their client
// must have a chance to keep them.
inline std::chrono::milliseconds short_session() {
  constexpr std::chrono::milliseconds shortest = std::chrono::seconds(dlock::test::sanitized ? 4 : 2);
  return std::max(shortest, 6 * short_lease());
}

}  // namespace dlock::conformance
