// The hash of file names and records: XXH128, seed 0, most significant byte first. Not cryptographic; code that relies
// on it for identity compares the full name, too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dlock::file {

struct Hash128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
};

[[nodiscard]] Hash128 hash128(std::string_view bytes) noexcept;
// 32 lower-case hexadecimal digits.
[[nodiscard]] std::string to_hex(const Hash128& hash);
// nullopt: not what to_hex() answers.
[[nodiscard]] std::optional<Hash128> parse_hash(std::string_view hex) noexcept;

}  // namespace dlock::file
