// Settings that reach the suite through environment variables.
#pragma once

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <string_view>

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

}  // namespace dlock::conformance
