// Percent-encoding, RFC 3986 section 2.1.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dlock::util {

// nullopt if a '%' is not followed by two hexadecimal digits.
[[nodiscard]] std::optional<std::string> percent_decode(std::string_view text);

}  // namespace dlock::util
