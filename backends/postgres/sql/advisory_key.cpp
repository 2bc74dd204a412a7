#include "backends/postgres/sql/advisory_key.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "backends/postgres/sql/digest.hpp"
#include "util/number.hpp"

namespace dlock::postgres {

namespace {

using KeySpace = AdvisoryKey::KeySpace;

constexpr std::uint32_t low_31_bits = 0x7fffffff;

using util::parse_number;

AdvisoryKey by_sha256(std::string_view schema, std::string_view name, LockKind kind) {
  std::string text("dlock");
  if (kind == LockKind::read_write) text += ".rw";
  if (kind == LockKind::election) text += ".elect";
  text += '\0';
  text += schema;
  text += '\0';
  text += name;
  const auto digest = sha256(text);
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < 8; ++i) number = number << 8U | digest[i];
  return AdvisoryKey::of(static_cast<std::int64_t>(number));
}

// Up to nine characters of ASCII fit: seven bits each, a 0, and 1s to the end. Their space is that of pairs.
std::optional<AdvisoryKey> as_short_ascii(std::string_view name) noexcept {
  constexpr std::size_t most_characters = 9;
  constexpr unsigned bits = 7;
  constexpr std::uint64_t all_ones = 0x7f;
  if (name.size() > most_characters) return std::nullopt;
  std::uint64_t number = 0;
  for (const char c : name) {
    const auto byte = static_cast<std::uint8_t>(c);
    if (byte > all_ones) return std::nullopt;
    number = number << bits | byte;
  }
  number <<= 1U;
  for (std::size_t i = name.size(); i < most_characters; ++i) number = number << bits | all_ones;
  return AdvisoryKey{KeySpace::pair, static_cast<std::int64_t>(number)};
}

// "0123456789abcdef" is a number, "01234567,89abcdef" a pair.
std::optional<AdvisoryKey> as_hexadecimal(std::string_view name) noexcept {
  constexpr std::size_t half = 8;
  const bool pair = name.size() == 2 * half + 1 && name[half] == ',';
  if (!pair && name.size() != 2 * half) return std::nullopt;
  // std::from_chars accepts no sign for unsigned numbers.
  const auto first = parse_number<std::uint32_t>(name.substr(0, half), 16);
  const auto second = parse_number<std::uint32_t>(name.substr(name.size() - half), 16);
  if (!first || !second) return std::nullopt;
  AdvisoryKey key = AdvisoryKey::of(static_cast<std::int32_t>(*first), static_cast<std::int32_t>(*second));
  key.space = pair ? KeySpace::pair : KeySpace::bigint;
  return key;
}

AdvisoryKey by_medallion(std::string_view name) noexcept {
  if (const auto key = as_short_ascii(name)) return *key;
  if (const auto key = as_hexadecimal(name)) return *key;
  const auto digest = sha1(name);
  std::uint64_t number = 0;
  for (std::size_t i = 8; i-- > 0;) number = number << 8U | digest[i];
  return AdvisoryKey::of(static_cast<std::int64_t>(number));
}

std::optional<KeyScheme> parse_pair(std::string_view text) noexcept {
  const std::size_t comma = text.find(',');
  if (comma == std::string_view::npos) return std::nullopt;
  const auto first = parse_number<std::int32_t>(text.substr(0, comma));
  const auto second = parse_number<std::int32_t>(text.substr(comma + 1));
  if (!first || !second) return std::nullopt;
  return KeyScheme{.kind = KeyScheme::Kind::pair, .first = *first, .second = *second};
}

}  // namespace

std::optional<KeyScheme> parse_key_scheme(std::string_view text) noexcept {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string_view word = text.substr(0, colon);
  if (colon == text.size()) {
    for (const auto& [without_value, kind] :
         {std::pair("sha256", KeyScheme::Kind::sha256), std::pair("medallion", KeyScheme::Kind::medallion),
          std::pair("crc32pair", KeyScheme::Kind::crc32pair),
          std::pair("hashtextextended", KeyScheme::Kind::hashtextextended)}) {
      if (word == without_value) return KeyScheme{.kind = kind};
    }
    return std::nullopt;
  }
  const std::string_view value = text.substr(colon + 1);
  const auto number = parse_number<std::int64_t>(value);
  if (word == "pair") return parse_pair(value);
  if (word == "int64" && number) return KeyScheme{.kind = KeyScheme::Kind::int64, .number = *number};
  if (word != "crc32pair" || !number) return std::nullopt;
  // with_advisory_lock takes the low 31 bits of any whole number.
  return KeyScheme{.kind = KeyScheme::Kind::crc32pair, .second = static_cast<std::int32_t>(*number & low_31_bits)};
}

AdvisoryKey AdvisoryKey::of(std::int32_t first, std::int32_t second) noexcept {
  const auto upper = static_cast<std::uint64_t>(static_cast<std::uint32_t>(first)) << 32U;
  return {KeySpace::pair, static_cast<std::int64_t>(upper | static_cast<std::uint32_t>(second))};
}

AdvisoryKey advisory_key(const KeyScheme& scheme, std::string_view schema, std::string_view name, LockKind kind) {
  switch (scheme.kind) {
    case KeyScheme::Kind::sha256:
      return by_sha256(schema, name, kind);
    case KeyScheme::Kind::int64:
      return AdvisoryKey::of(scheme.number);
    case KeyScheme::Kind::pair:
      return AdvisoryKey::of(scheme.first, scheme.second);
    case KeyScheme::Kind::medallion:
      return by_medallion(name);
    case KeyScheme::Kind::crc32pair:
      return AdvisoryKey::of(static_cast<std::int32_t>(crc32(name) & low_31_bits), scheme.second);
    case KeyScheme::Kind::hashtextextended:
      break;
  }
  return {KeySpace::server, 0};
}

std::string key_parameter(const AdvisoryKey& key, std::string_view name) {
  return key.space == KeySpace::server ? std::string(name) : std::to_string(key.number);
}

std::string token_row(const KeyScheme& scheme, std::string_view name) {
  std::string row(name);
  if (scheme.kind == KeyScheme::Kind::sha256) return row;
  const AdvisoryKey key = advisory_key(scheme, {}, name);  // no other scheme uses the schema
  if (key.space == KeySpace::server) return row + "\thashtextextended";
  if (key.space == KeySpace::bigint) return row + "\tint64:" + std::to_string(key.number);
  return row + "\tpair:" + std::to_string(key.first()) + "," + std::to_string(key.second());
}

}  // namespace dlock::postgres
