// Lock names as file names: every name has exactly one, and no two short names share one.
//
//   orders-42   -> orders-42.lock
//   orders/42   -> orders%2F42.lock
//   ..          -> %2E..lock
//
// The bytes A-Z a-z 0-9 _ - and . stand for themselves (a dot not in first place); every other byte becomes % and two
// upper-case hexadecimal digits. A result of more than 200 bytes is cut at the last whole byte or escape within 160 and
// continued with ~ and the 32 digits of the name's hash; as ~ itself is always escaped, the forms cannot be mistaken
// for each other. Plain functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dlock::file {

// The longest file name that encode_file_name() answers.
inline constexpr std::size_t max_file_name = 200 + 5;

[[nodiscard]] std::string encode_file_name(std::string_view lock_name);

// The lock's name, or nullopt: not a name of ours, or one that is cut short (see is_shortened).
[[nodiscard]] std::optional<std::string> decode_file_name(std::string_view file_name);

// Whether it is a name of ours that was cut, so that only the file's content knows the lock's name.
[[nodiscard]] bool is_shortened(std::string_view file_name) noexcept;

// XXH128, seed 0, as 32 lower-case hexadecimal digits, most significant byte first. Not cryptographic; code that relies
// on it for identity compares the full name, too.
[[nodiscard]] std::string hash_of(std::string_view bytes);

}  // namespace dlock::file
