// Percent-encoding, RFC 3986 section 2.1.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dlock::util {

// '%' and two upper-case hexadecimal digits for each byte that `plain` refuses.
[[nodiscard]] std::string percent_encode(std::string_view text, bool (*plain)(unsigned char));

// nullopt if a '%' is not followed by two hexadecimal digits.
[[nodiscard]] std::optional<std::string> percent_decode(std::string_view text);

}  // namespace dlock::util
