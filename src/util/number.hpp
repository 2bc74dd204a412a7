// Numbers in texts that others wrote.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace dlock::util {

// nullopt unless the whole text is a number of that type. Unsigned numbers have no sign.
template <class Number>
[[nodiscard]] std::optional<Number> parse_number(std::string_view text, int base = 10) noexcept {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace dlock::util
