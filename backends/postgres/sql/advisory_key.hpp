// The advisory lock that belongs to a name. PostgreSQL identifies advisory locks by numbers, in two spaces that do not
// overlap: one of 64 bits and one of pairs of 32. Other libraries derive the number in other ways; with the scheme of a
// library, dlock acquires the same lock as that library does. No I/O.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <dlock/lock_kind.hpp>

namespace dlock::postgres {

struct KeyScheme {
  enum class Kind {
    // The first 8 bytes, big-endian, of SHA-256("dlock" NUL schema NUL name). Other kinds of locks replace "dlock" by,
    // for example, "dlock.elect". With all other schemes, one name is the same lock for all kinds.
    sha256,
    int64,             // one number, whatever the name
    pair,              // one pair, whatever the name
    medallion,         // madelson/DistributedLock: PostgresAdvisoryLockKey(name, allowHashing: true)
    crc32pair,         // with_advisory_lock (Ruby): CRC-32 and a prefix, 31 bits each
    hashtextextended,  // the server's function of that name, seed 0
  };
  Kind kind = Kind::sha256;
  std::int64_t number = 0;  // int64
  std::int32_t first = 0;   // pair
  std::int32_t second = 0;  // pair; crc32pair: the low 31 bits of the prefix

  friend bool operator==(const KeyScheme&, const KeyScheme&) = default;
};

// For messages.
inline constexpr const char* key_schemes = "sha256, int64:<n>, pair:<a>,<b>, medallion, crc32pair or hashtextextended";

// "sha256", "int64:-5", "pair:1,2", "medallion", "crc32pair" or "crc32pair:7", "hashtextextended". nullopt: any other
// text, or a number that does not fit.
[[nodiscard]] std::optional<KeyScheme> parse_key_scheme(std::string_view text) noexcept;

struct AdvisoryKey {
  enum class KeySpace {
    bigint,  // pg_advisory_lock(bigint); objsubid 1 in pg_locks
    pair,    // pg_advisory_lock(integer, integer); objsubid 2
    server,  // bigint, and only the server knows which
  };
  KeySpace space = KeySpace::bigint;
  std::int64_t number = 0;  // of a pair, the first in the upper half and the second in the lower one

  [[nodiscard]] static AdvisoryKey of(std::int64_t number) noexcept { return {KeySpace::bigint, number}; }
  [[nodiscard]] static AdvisoryKey of(std::int32_t first, std::int32_t second) noexcept;
  [[nodiscard]] std::int32_t first() const noexcept { return static_cast<std::int32_t>(number >> 32U); }
  [[nodiscard]] std::int32_t second() const noexcept { return static_cast<std::int32_t>(number); }

  // Two names with equal keys are one lock, unless the server computes the key.
  friend auto operator<=>(const AdvisoryKey&, const AdvisoryKey&) = default;
};

[[nodiscard]] AdvisoryKey advisory_key(const KeyScheme& scheme, std::string_view schema, std::string_view name,
                                       LockKind kind = LockKind::lock);

// The parameter "key" of the statements for advisory locks: the number, or the name if the server computes the number.
[[nodiscard]] std::string key_parameter(const AdvisoryKey& key, std::string_view name);

// The "name" of the row in table "fence" that has the tokens of that lock. Different locks have different rows: with
// one row, locks that do not exclude each other would wait for each other. With the scheme sha256 it is the lock's
// name; with others a tab, which no name contains, and the key follow.
[[nodiscard]] std::string token_row(const KeyScheme& scheme, std::string_view name);

}  // namespace dlock::postgres
