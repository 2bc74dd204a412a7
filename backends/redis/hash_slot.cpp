#include "backends/redis/hash_slot.hpp"

#include <array>

namespace dlock::redis {

namespace {

constexpr auto table = [] {
  std::array<std::uint16_t, 256> out{};
  for (std::size_t byte = 0; byte < out.size(); ++byte) {
    auto crc = static_cast<std::uint32_t>(byte << 8U);
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 0x8000U) != 0 ? (crc << 1U) ^ 0x1021U : crc << 1U;
    out.at(byte) = static_cast<std::uint16_t>(crc);
  }
  return out;
}();

}  // namespace

std::string_view hashed_part(std::string_view key) noexcept {
  const std::size_t open = key.find('{');
  if (open == std::string_view::npos) return key;
  const std::size_t close = key.find('}', open + 1);
  if (close == std::string_view::npos || close == open + 1) return key;
  return key.substr(open + 1, close - open - 1);
}

bool has_usable_braces(std::string_view key) noexcept {
  return key.find('}') == std::string_view::npos || hashed_part(key).size() < key.size();
}

std::uint16_t slot_of(std::string_view key) noexcept {
  std::uint32_t crc = 0;
  for (const char c : hashed_part(key)) {
    const std::size_t at = ((crc >> 8U) ^ static_cast<unsigned char>(c)) & 0xffU;
    crc = ((crc << 8U) ^ table[at]) & 0xffffU;
  }
  return static_cast<std::uint16_t>(crc % slots);
}

}  // namespace dlock::redis
