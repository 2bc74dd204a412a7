// Hashes for keys and names. Not for secrets. No I/O.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dlock::postgres {

[[nodiscard]] std::array<std::uint8_t, 32> sha256(std::string_view text) noexcept;
[[nodiscard]] std::array<std::uint8_t, 20> sha1(std::string_view text) noexcept;
// As in zlib, PNG and Ethernet.
[[nodiscard]] std::uint32_t crc32(std::string_view text) noexcept;

}  // namespace dlock::postgres
