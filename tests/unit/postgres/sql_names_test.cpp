// Names of locks and of schemas, as the server is given them: quoted, as keys, as names of channels and rows.
#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <dlock/error.hpp>

#include "backends/postgres/sql/advisory_key.hpp"
#include "backends/postgres/sql/digest.hpp"
#include "backends/postgres/sql/identifier.hpp"
#include "hostile_names.hpp"

namespace dlock::postgres {

namespace {

struct Finish {
  void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
};
struct Free {
  void operator()(char* text) const noexcept { PQfreemem(text); }
};

// Without a server: the directory of the socket does not exist.
std::unique_ptr<PGconn, Finish> no_connection() {
  return std::unique_ptr<PGconn, Finish>(PQconnectStart("host=/nonexistent/dlock user=nobody dbname=none"));
}

// Hazard: names that are SQL
TEST(PostgresIdentifier, Quoting_MatchesTheClientLibrary) {
  EXPECT_EQ(qualified("s\"", "t"), "\"s\"\"\".\"t\"");
  const auto connection = no_connection();
  ASSERT_NE(connection, nullptr);
  for (const std::string& name : hostile_names(2000)) {
    ASSERT_EQ(problem_with_identifier(name), std::nullopt) << name;
    const std::unique_ptr<char, Free> theirs(PQescapeIdentifier(connection.get(), name.data(), name.size()));
    ASSERT_NE(theirs, nullptr) << name << ": " << PQerrorMessage(connection.get());
    EXPECT_EQ(quote_identifier(name), theirs.get());
  }
}

// Hazard: the server truncates names of schemas, so that two are one
TEST(PostgresIdentifier, NameThatTheServerChanges_IsRefused) {
  using namespace std::string_literals;
  const std::vector<std::string> bad = {"",     std::string(64, 'x'), "a\0b"s,        "a\nb",  "\x7f",
                                        "\xff", "\xc0\x80",           "\xed\xa0\x80", "a\xc3", "\xf5\x80\x80\x80"};
  for (const std::string& name : bad) {
    EXPECT_NE(problem_with_identifier(name), std::nullopt);
    EXPECT_THROW((void)quote_identifier(name), Error);
  }
  EXPECT_EQ(problem_with_identifier(std::string(63, 'x')), std::nullopt);
  EXPECT_NE(problem_with_identifier(std::string(64, 'x'))->find("63"), std::string::npos);
  EXPECT_EQ(*problem_with_identifier(""), "is empty");
}

TEST(PostgresIdentifier, EachSchema_HasItsChannel) {
  EXPECT_EQ(channel_of("dlock"), "dlock:dlock");
  EXPECT_EQ(channel_of("dlock", LockKind::election), "dlock.elect:dlock");
  EXPECT_EQ(channel_of(std::string(57, 'x')), "dlock:" + std::string(57, 'x'));
  std::set<std::string> channels;
  for (const char c : {'x', 'y', 'z'}) {
    for (std::size_t length = 55; length <= max_identifier_bytes; ++length) {
      const std::string channel = channel_of(std::string(length, c));
      EXPECT_EQ(problem_with_identifier(channel), std::nullopt) << channel;
      EXPECT_TRUE(channels.insert(channel).second) << channel;
    }
  }
}

// --- Advisory keys ---------------------------------------------------------------------------------------------------

// Keys and the names of token rows are a promise: clients of all versions must agree, and so must other libraries.

using KeySpace = AdvisoryKey::KeySpace;
using Limits = std::numeric_limits<std::int32_t>;

AdvisoryKey key_of(const std::string& scheme, const std::string& name, const std::string& schema = "dlock",
                   LockKind kind = LockKind::lock) {
  return advisory_key(parse_key_scheme(scheme).value(), schema, name, kind);
}
std::string row_of(const std::string& scheme, const std::string& name) {
  return token_row(parse_key_scheme(scheme).value(), name);
}
AdvisoryKey number(std::int64_t number) {
  return AdvisoryKey::of(number);
}
AdvisoryKey pair(std::int32_t first, std::int32_t second) {
  return AdvisoryKey::of(first, second);
}

TEST(PostgresDigest, PublishedExamples_Agree) {
  // FIPS 180-4, "abc"; the check value of CRC-32 catalogues.
  EXPECT_EQ(sha256("abc")[0], 0xba);
  EXPECT_EQ(sha256("abc")[31], 0xad);
  EXPECT_EQ(sha1("abc")[0], 0xa9);
  EXPECT_EQ(sha1("abc")[19], 0x9d);
  EXPECT_EQ(sha1("")[0], 0xda);
  EXPECT_EQ(crc32("123456789"), 0xcbf43926U);
  EXPECT_EQ(crc32(""), 0U);
}

// Hazard: numbers and pairs are different locks
// Hazard: keys that are computed differently from other programs
TEST(PostgresAdvisoryKey, EachScheme_GivesTheKeyOfOtherLibraries) {
  std::string long_name;  // the number is from the tests of DistributedLock
  for (int i = 0; i < 18; ++i) long_name += "\u6f22";
  const struct {
    std::string scheme;
    std::string name;
    AdvisoryKey key;
    std::string schema = "dlock";
    LockKind kind = LockKind::lock;
  } rows[] = {
      {"sha256", "orders/42", number(-1294026372512138444)},
      {"sha256", "\u00e9", number(6662159948841920287)},
      {"sha256", "orders/42", number(-7938638125447620677), "other"},
      {"sha256", "orders/42", number(6054727371132939974), "dlock", LockKind::read_write},
      {"sha256", "orders/42", number(6204744850386786817), "dlock", LockKind::election},
      {"int64:-9223372036854775808", "x", number(std::numeric_limits<std::int64_t>::min())},
      {"pair:3,-1", "x", {KeySpace::pair, 0x3ffffffffLL}},
      {"pair:-2147483648,2147483647", "x", pair(Limits::min(), Limits::max())},
      {"crc32pair", "orders/42", pair(370287966, 0)},
      {"crc32pair", "\u00e9", pair(235179326, 0)},
      {"crc32pair:7", "123456789", pair(1274296614, 7)},
      {"crc32pair:4294967297", "123456789", pair(1274296614, 1)},
      {"hashtextextended", "orders/42", {KeySpace::server, 0}},
      // Long names are hashed, short ones are packed, hexadecimal ones are numbers.
      {"medallion", long_name, number(-5707277204051710361)},
      {"medallion", "some very long name", number(1765484347666752899)},
      {"medallion", "a", pair(-1023410177, -1)},
      {"medallion", "base38", pair(-980967850, 1847590911)},
      {"medallion", "ASCII", pair(-2092032871, 805306367)},
      {"medallion", "orders/42", pair(-540334498, 1557640292)},
      {"medallion", "0000000000000001", number(1)},
      {"medallion", "FFFFFFFFffffffff", number(-1)},
      {"medallion", "00000003,ffffffff", pair(3, -1)},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(key_of(row.scheme, row.name, row.schema, row.kind), row.key) << row.scheme << " " << row.name;
  }
  EXPECT_EQ(key_parameter(key_of("sha256", "orders/42"), "orders/42"), "-1294026372512138444");
  EXPECT_EQ(key_parameter(key_of("hashtextextended", "orders/42"), "orders/42"), "orders/42");
}

TEST(PostgresAdvisoryKey, PairOfHalves_IsReadBack) {
  for (const std::int32_t first : {0, 1, -1, Limits::min(), Limits::max()}) {
    for (const std::int32_t second : {0, 1, -1, Limits::min(), Limits::max()}) {
      EXPECT_EQ(pair(first, second).first(), first);
      EXPECT_EQ(pair(first, second).second(), second);
    }
  }
}

TEST(PostgresAdvisoryKey, DistributedLockScheme_PacksShortNamesAndHashesOthers) {
  std::set<std::int64_t> numbers;
  for (char c = ' '; c <= '~'; ++c) {
    for (std::size_t length = 1; length <= 9; ++length) {
      const AdvisoryKey key = key_of("medallion", std::string(length, c));
      EXPECT_EQ(key.space, KeySpace::pair);
      EXPECT_TRUE(numbers.insert(key.number).second) << std::string(length, c);
    }
  }
  for (const char* name : {"\u6f22", "orders/421", "000000000000000g", "+000000000000001", "-000000000000001",
                           " 000000000000001", "0x00000000000001", "00000003;ffffffff", "0000003,fffffffff"}) {
    const AdvisoryKey key = key_of("medallion", name);
    EXPECT_EQ(key.space, KeySpace::bigint) << name;
    EXPECT_TRUE(key.number > 0xffff || key.number < -0xffff) << name << " is to be hashed";
  }
}

TEST(PostgresKeyScheme, UnknownOrUnfitScheme_IsRefused) {
  for (const char* const text :
       {"", ":", "md5", "SHA256", "sha256:", "medallion:x", "hashtextextended:1",
        // their numbers
        "int64", "int64:", "int64:x", "int64:1 ", "int64:+1", "int64:9223372036854775808", "pair", "pair:", "pair:1",
        "pair:1,", "pair:,1", "pair:1,2,3", "pair:2147483648,0", "crc32pair:", "crc32pair:x"}) {
    EXPECT_EQ(parse_key_scheme(text), std::nullopt) << text;
  }
}

// Locks that do not exclude each other would wait for each other's tokens.
TEST(PostgresTokenRow, DifferentLocks_HaveDifferentRows) {
  EXPECT_EQ(row_of("sha256", "orders/42"), "orders/42");
  EXPECT_EQ(row_of("int64:-42", "a"), "a\tint64:-42");
  EXPECT_EQ(row_of("pair:1,-2", "a"), "a\tpair:1,-2");
  EXPECT_EQ(row_of("crc32pair:7", "a"), "a\tpair:1756872259,7");
  EXPECT_EQ(row_of("hashtextextended", "a"), "a\thashtextextended");
  EXPECT_EQ(row_of("medallion", "0123456789abcdef"), "0123456789abcdef\tint64:81985529216486895");
  std::set<std::string> rows;
  for (const std::string name : {"a", "b", "a\xc3\xa4", "int64:42"}) {
    for (const char* const scheme : {"sha256", "int64:42", "int64:43", "pair:0,42", "pair:42,0", "medallion",
                                     "crc32pair", "crc32pair:7", "hashtextextended"}) {
      EXPECT_TRUE(rows.insert(row_of(scheme, name)).second) << scheme << name;
    }
  }
  EXPECT_LE(row_of("pair:-2147483648,-2147483648", std::string(512, 'x')).size(), 1024U) << "the table takes no more";
}

}  // namespace

}  // namespace dlock::postgres
