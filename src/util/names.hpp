// Rules for texts from callers.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dlock::util {

// The problem with a lock's name, in words that name the offending byte; nullopt for a good one: UTF-8 (RFC 3629) of
// 1..512 bytes without control characters (U+0000..1F, U+7F..9F).
[[nodiscard]] std::optional<std::string> problem_with_name(std::string_view name);

// As problem_with_name(), for a client's label of 1..64 bytes.
[[nodiscard]] std::optional<std::string> problem_with_label(std::string_view label);

// As problem_with_name(), for the value of a candidate in an election, of 0..1024 bytes.
[[nodiscard]] std::optional<std::string> problem_with_value(std::string_view value);

// Whether it is a URL scheme by RFC 3986 section 3.1, in lower case.
[[nodiscard]] bool is_scheme(std::string_view text) noexcept;

// As printable() (dlock/info.hpp), in quotes and cut to a length that fits a message.
[[nodiscard]] std::string quoted(std::string_view text);

}  // namespace dlock::util
