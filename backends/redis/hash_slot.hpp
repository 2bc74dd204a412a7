// Which of a cluster's slots a key is in. No I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dlock::redis {

inline constexpr std::size_t slots = 16384;

// What is between the first '{' and the next '}', if there is something; else the whole key.
[[nodiscard]] std::string_view hashed_part(std::string_view key) noexcept;
// Whether keys derived from keys that begin with this can share their slot: every '}' is part of a hash tag, or follows
// one.
[[nodiscard]] bool has_usable_braces(std::string_view key) noexcept;
// CRC-16 (XMODEM: polynomial 0x1021, from 0) of that, as the Redis cluster specification says.
[[nodiscard]] std::uint16_t slot_of(std::string_view key) noexcept;

}  // namespace dlock::redis
