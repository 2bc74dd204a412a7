#include "backends/postgres/sql/digest.hpp"

#include <openssl/sha.h>

namespace dlock::postgres {

namespace {

const unsigned char* bytes(std::string_view text) noexcept {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

std::array<std::uint8_t, 32> sha256(std::string_view text) noexcept {
  std::array<std::uint8_t, 32> digest{};
  SHA256(bytes(text), text.size(), digest.data());
  return digest;
}

std::array<std::uint8_t, 20> sha1(std::string_view text) noexcept {
  std::array<std::uint8_t, 20> digest{};
  SHA1(bytes(text), text.size(), digest.data());
  return digest;
}

std::uint32_t crc32(std::string_view text) noexcept {
  constexpr std::uint32_t reflected_polynomial = 0xedb88320;
  std::uint32_t crc = 0xffffffff;
  for (const char c : text) {
    crc ^= static_cast<std::uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? reflected_polynomial : 0U);
  }
  return ~crc;
}

}  // namespace dlock::postgres
