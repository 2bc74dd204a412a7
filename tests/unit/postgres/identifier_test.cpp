#include "backends/postgres/sql/identifier.hpp"

#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include <dlock/error.hpp>

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

}  // namespace

}  // namespace dlock::postgres
