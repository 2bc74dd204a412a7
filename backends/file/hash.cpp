#include "backends/file/hash.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <dlock/token.hpp>

namespace dlock::file {

Hash128 hash128(std::string_view bytes) noexcept {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

std::string to_hex(const Hash128& hash) {
  return OwnerId(hash.high, hash.low).to_string();
}

std::optional<Hash128> parse_hash(std::string_view hex) noexcept {
  const auto bits = OwnerId::parse(hex);
  if (!bits) return std::nullopt;
  return Hash128{bits->high(), bits->low()};
}

}  // namespace dlock::file
