#include "backends/postgres/sql/advisory_key.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/postgres/sql/digest.hpp"

namespace dlock::postgres {

namespace {

using Kind = KeyScheme::Kind;
using KeySpace = AdvisoryKey::KeySpace;

AdvisoryKey medallion(std::string_view name) {
  return advisory_key({.kind = Kind::medallion}, "dlock", name);
}

std::string repeated(std::string_view text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

TEST(PostgresDigest, AgreesWithThePublishedExamples) {
  // FIPS 180-4, "abc"; the check value of CRC-32 catalogues.
  EXPECT_EQ(sha256("abc")[0], 0xba);
  EXPECT_EQ(sha256("abc")[31], 0xad);
  EXPECT_EQ(sha1("abc")[0], 0xa9);
  EXPECT_EQ(sha1("abc")[19], 0x9d);
  EXPECT_EQ(sha1("")[0], 0xda);
  EXPECT_EQ(crc32("123456789"), 0xcbf43926U);
  EXPECT_EQ(crc32(""), 0U);
}

// A promise: clients of all versions must agree.
TEST(PostgresAdvisoryKey, OfDlockIsAsPromised) {
  EXPECT_EQ(advisory_key({}, "dlock", "orders/42"), AdvisoryKey::of(std::int64_t{-1294026372512138444}));
  EXPECT_EQ(advisory_key({}, "dlock", "\u00e9"), AdvisoryKey::of(std::int64_t{6662159948841920287}));
  EXPECT_EQ(advisory_key({}, "other", "orders/42"), AdvisoryKey::of(std::int64_t{-7938638125447620677}));
  EXPECT_EQ(key_parameter(advisory_key({}, "dlock", "orders/42"), "orders/42"), "-1294026372512138444");
  EXPECT_EQ(advisory_key({}, "dlock", "orders/42", LockKind::read_write),
            AdvisoryKey::of(std::int64_t{6054727371132939974}));
  EXPECT_EQ(advisory_key({}, "dlock", "orders/42", LockKind::election),
            AdvisoryKey::of(std::int64_t{6204744850386786817}));
}

TEST(PostgresAdvisoryKey, NumbersAreTakenAsTheyAre) {
  constexpr auto smallest = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(advisory_key({.kind = Kind::int64, .number = smallest}, "dlock", "x"), AdvisoryKey::of(smallest));
  const AdvisoryKey pair = advisory_key({.kind = Kind::pair, .first = 3, .second = -1}, "dlock", "x");
  EXPECT_EQ(pair.space, KeySpace::pair);
  EXPECT_EQ(pair.first(), 3);
  EXPECT_EQ(pair.second(), -1);
  EXPECT_EQ(pair.number, 0x3ffffffffLL);
}

TEST(PostgresAdvisoryKey, HalvesOfAPairAreFoundAgain) {
  using Limits = std::numeric_limits<std::int32_t>;
  for (const std::int32_t first : {0, 1, -1, Limits::min(), Limits::max()}) {
    for (const std::int32_t second : {0, 1, -1, Limits::min(), Limits::max()}) {
      const AdvisoryKey key = AdvisoryKey::of(first, second);
      EXPECT_EQ(key.first(), first);
      EXPECT_EQ(key.second(), second);
    }
  }
}

// The number is from that library's own tests.
TEST(PostgresAdvisoryKey, LongNamesAreHashedAsDistributedLockDoesIt) {
  EXPECT_EQ(medallion(repeated("\u6f22", 18)), AdvisoryKey::of(std::int64_t{-5707277204051710361}));
  EXPECT_EQ(medallion("some very long name"), AdvisoryKey::of(std::int64_t{1765484347666752899}));
  EXPECT_EQ(medallion("\u6f22").space, KeySpace::bigint) << "short, but not ASCII";
}

TEST(PostgresAdvisoryKey, ShortNamesArePackedAsDistributedLockDoesIt) {
  EXPECT_EQ(medallion("a"), AdvisoryKey::of(-1023410177, -1));
  EXPECT_EQ(medallion("base38"), AdvisoryKey::of(-980967850, 1847590911));
  EXPECT_EQ(medallion("ASCII"), AdvisoryKey::of(-2092032871, 805306367));
  EXPECT_EQ(medallion("orders/42"), AdvisoryKey::of(-540334498, 1557640292));
  EXPECT_EQ(medallion("orders/421").space, KeySpace::bigint) << "ten characters";
  std::set<std::int64_t> numbers;
  for (char c = ' '; c <= '~'; ++c) {
    for (std::size_t length = 1; length <= 9; ++length) {
      const AdvisoryKey key = medallion(std::string(length, c));
      EXPECT_EQ(key.space, KeySpace::pair);
      EXPECT_TRUE(numbers.insert(key.number).second) << std::string(length, c);
    }
  }
}

TEST(PostgresAdvisoryKey, HexadecimalNamesAreNumbersAsInDistributedLock) {
  EXPECT_EQ(medallion("0000000000000001"), AdvisoryKey::of(std::int64_t{1}));
  EXPECT_EQ(medallion("FFFFFFFFffffffff"), AdvisoryKey::of(std::int64_t{-1}));
  EXPECT_EQ(medallion("00000003,ffffffff"), AdvisoryKey::of(3, -1));
  for (const char* name : {"000000000000000g", "+000000000000001", "-000000000000001", " 000000000000001",
                           "0x00000000000001", "00000003;ffffffff", "0000003,fffffffff"}) {
    const AdvisoryKey key = medallion(name);
    EXPECT_EQ(key.space, KeySpace::bigint) << name;
    EXPECT_TRUE(key.number > 0xffff || key.number < -0xffff) << name << " is to be hashed";
  }
}

TEST(PostgresAdvisoryKey, OfWithAdvisoryLockIsAChecksumAndAPrefix) {
  EXPECT_EQ(advisory_key({.kind = Kind::crc32pair}, "dlock", "orders/42"), AdvisoryKey::of(370287966, 0));
  EXPECT_EQ(advisory_key({.kind = Kind::crc32pair}, "dlock", "\u00e9"), AdvisoryKey::of(235179326, 0));
  EXPECT_EQ(advisory_key({.kind = Kind::crc32pair, .second = 7}, "dlock", "123456789"), AdvisoryKey::of(1274296614, 7));
}

TEST(PostgresAdvisoryKey, MayBeLeftToTheServer) {
  const AdvisoryKey key = advisory_key({.kind = Kind::hashtextextended}, "dlock", "orders/42");
  EXPECT_EQ(key.space, KeySpace::server);
  EXPECT_EQ(key_parameter(key, "orders/42"), "orders/42");
}

TEST(PostgresAdvisoryKey, IsInTheSpaceOfItsScheme) {
  for (const auto& [text, space] : {std::pair("sha256", KeySpace::bigint), std::pair("int64:5", KeySpace::bigint),
                                    std::pair("pair:1,2", KeySpace::pair), std::pair("crc32pair", KeySpace::pair),
                                    std::pair("hashtextextended", KeySpace::server)}) {
    EXPECT_EQ(advisory_key(parse_key_scheme(text).value(), "dlock", "x").space, space) << text;
  }
}

TEST(PostgresKeyScheme, IsParsed) {
  EXPECT_EQ(parse_key_scheme("sha256"), KeyScheme());
  EXPECT_EQ(parse_key_scheme("medallion"), (KeyScheme{.kind = Kind::medallion}));
  EXPECT_EQ(parse_key_scheme("hashtextextended"), (KeyScheme{.kind = Kind::hashtextextended}));
  EXPECT_EQ(parse_key_scheme("crc32pair"), (KeyScheme{.kind = Kind::crc32pair}));
  EXPECT_EQ(parse_key_scheme("crc32pair:7"), (KeyScheme{.kind = Kind::crc32pair, .second = 7}));
  EXPECT_EQ(parse_key_scheme("crc32pair:4294967297"), (KeyScheme{.kind = Kind::crc32pair, .second = 1}));
  EXPECT_EQ(parse_key_scheme("int64:-9223372036854775808"),
            (KeyScheme{.kind = Kind::int64, .number = std::numeric_limits<std::int64_t>::min()}));
  EXPECT_EQ(parse_key_scheme("pair:-2147483648,2147483647"),
            (KeyScheme{.kind = Kind::pair,
                       .first = std::numeric_limits<std::int32_t>::min(),
                       .second = std::numeric_limits<std::int32_t>::max()}));
}

TEST(PostgresKeyScheme, IsRefusedWhereItIsNoneOrDoesNotFit) {
  for (const char* text : {"",
                           ":",
                           "md5",
                           "SHA256",
                           "sha256:",
                           "medallion:x",
                           "int64",
                           "int64:",
                           "int64:x",
                           "int64:1 ",
                           "int64:+1",
                           "int64:9223372036854775808",
                           "pair",
                           "pair:",
                           "pair:1",
                           "pair:1,",
                           "pair:,1",
                           "pair:1,2,3",
                           "pair:2147483648,0",
                           "crc32pair:",
                           "crc32pair:x",
                           "hashtextextended:1"}) {
    EXPECT_EQ(parse_key_scheme(text), std::nullopt) << text;
  }
}

std::string row(const std::string& scheme, const std::string& name) {
  return token_row(*parse_key_scheme(scheme), name);
}

// What is stored is a promise to clients of other versions.
TEST(PostgresTokenRow, OfDlocksOwnKeysIsTheName) {
  EXPECT_EQ(row("sha256", "orders/42"), "orders/42");
  EXPECT_EQ(row("sha256", "int64:42"), "int64:42");
}

TEST(PostgresTokenRow, OfOtherKeysSaysTheKey) {
  EXPECT_EQ(row("int64:-42", "a"), "a\tint64:-42");
  EXPECT_EQ(row("pair:1,-2", "a"), "a\tpair:1,-2");
  EXPECT_EQ(row("crc32pair:7", "a"), "a\tpair:1756872259,7");
  EXPECT_EQ(row("hashtextextended", "a"), "a\thashtextextended");
  EXPECT_EQ(row("medallion", "0123456789abcdef"), "0123456789abcdef\tint64:81985529216486895");
}

// Locks that do not exclude each other would wait for each other's tokens.
TEST(PostgresTokenRow, OfDifferentLocksIsAnother) {
  std::set<std::string> rows;
  const std::vector<std::string> schemes = {"sha256",    "int64:42",  "int64:43",    "pair:0,42",       "pair:42,0",
                                            "medallion", "crc32pair", "crc32pair:7", "hashtextextended"};
  for (const std::string name : {"a", "b", "a\xc3\xa4", "int64:42"}) {
    for (const std::string& scheme : schemes) EXPECT_TRUE(rows.insert(row(scheme, name)).second) << scheme << name;
  }
}

// The table takes no more than 1024 bytes.
TEST(PostgresTokenRow, OfTheLongestNameFits) {
  EXPECT_LE(row("pair:-2147483648,-2147483648", std::string(512, 'x')).size(), 1024U);
}

}  // namespace

}  // namespace dlock::postgres
