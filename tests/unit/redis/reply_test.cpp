#include "backends/redis/connection/reply.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace dlock::redis {

namespace {

using Type = Reply::Type;

std::string repeated(std::string_view text, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += text;
  return out;
}

// Feeds in pieces of that size and returns the replies, up to a problem.
std::vector<Reply> read_all(ReplyReader& reader, std::string_view bytes, std::size_t piece) {
  std::vector<Reply> out;
  while (!bytes.empty()) {
    reader.feed(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    while (auto reply = reader.next()) out.push_back(*std::move(reply));
  }
  return out;
}

TEST(ReplyReader, ReadsEveryTypeHoweverTheBytesArrive) {
  const std::string bytes =
      "+OK\r\n-ERR no\r\n:-42\r\n$5\r\na\r\nbc\r\n$-1\r\n$0\r\n\r\n*3\r\n:1\r\n*2\r\n+x\r\n$1\r\ny\r\n*-1\r\n*0\r\n";
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    ReplyReader reader;
    const auto replies = read_all(reader, bytes, piece);
    ASSERT_EQ(replies.size(), 8U) << "in pieces of " << piece << ": " << reader.problem();
    EXPECT_TRUE(replies[0].is(Type::status) && replies[0].text == "OK");
    EXPECT_TRUE(replies[1].is(Type::error) && replies[1].text == "ERR no");
    EXPECT_TRUE(replies[2].is(Type::integer) && replies[2].integer == -42);
    EXPECT_TRUE(replies[3].is(Type::string) && replies[3].text == "a\r\nbc");
    EXPECT_TRUE(replies[4].is(Type::nil));
    EXPECT_TRUE(replies[5].is(Type::string) && replies[5].text.empty());
    ASSERT_TRUE(replies[6].is(Type::array) && replies[6].elements.size() == 3);
    EXPECT_EQ(replies[6].elements[0].integer, 1);
    EXPECT_EQ(replies[6].elements[1].elements[1].text, "y");
    EXPECT_TRUE(replies[6].elements[2].is(Type::nil));
    EXPECT_TRUE(replies[7].is(Type::array) && replies[7].elements.empty());
  }
}

struct Hostile {
  const char* name;
  std::string bytes;
};

TEST(ReplyReader, RefusesWhatNoRedisSends) {
  const Hostile cases[] = {
      {"http", "HTTP/1.1 400 Bad Request\r\n\r\n"},
      {"a type of a later protocol", "%1\r\n+a\r\n+b\r\n"},
      {"bulk beyond the limit", "$4194305\r\n"},
      {"bulk beyond 64 bits", "$99999999999999999999999\r\n"},
      {"bulk of the largest number", "$9223372036854775807\r\n"},
      {"negative bulk", "$-7\r\nabc\r\n"},
      {"bulk in words", "$five\r\nhello\r\n"},
      {"array beyond the limit", "*65537\r\n"},
      {"array beyond 32 bits", "*4294967296\r\n"},
      {"negative array", "*-5\r\n"},
      {"number in words", ":seven\r\n"},
      {"nesting", repeated("*1\r\n", 100)},
      {"wide nesting", repeated("*1024\r\n", 1000)},
      {"inline without end", "+" + std::string(10'000, 'x')},
      {"number without end", ":" + std::string(10'000, '1')},
      {"length without end", "$" + std::string(10'000, '1')},
      {"error without end", "-" + std::string(10'000, 'x')},
  };
  for (const Hostile& each : cases) {
    for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{16384}}) {
      ReplyReader reader({.line = 4096});
      EXPECT_TRUE(read_all(reader, each.bytes, piece).empty()) << each.name;
      EXPECT_FALSE(reader.problem().empty()) << each.name << " in pieces of " << piece;
    }
  }
}

TEST(ReplyReader, BoundsTheBytesOfOneReplyAndNotOfTheConnection) {
  const ReplyLimits limits{.bytes = 1000, .elements = 10, .line = 100};
  ReplyReader reader(limits);
  const std::string half = "$500\r\n" + std::string(500, 'x') + "\r\n";
  EXPECT_EQ(read_all(reader, repeated(half, 50), 64).size(), 50U);
  EXPECT_EQ(read_all(reader, "*2\r\n" + half + half, 64).size(), 1U);
  EXPECT_TRUE(read_all(reader, "*3\r\n" + half + half + "$1\r\nx\r\n", 64).empty());
  EXPECT_FALSE(reader.problem().empty());
}

TEST(ReplyReader, BoundsTheElementsOfOneReplyAtAllDepthsTogether) {
  const ReplyLimits limits{.bytes = 1000, .elements = 10, .line = 100};
  ReplyReader reader(limits);
  EXPECT_EQ(read_all(reader, repeated("*10\r\n" + repeated(":1\r\n", 10), 5), 64).size(), 5U);
  EXPECT_TRUE(read_all(reader, "*5\r\n*6\r\n", 64).empty());
  EXPECT_FALSE(reader.problem().empty());
}

TEST(ReplyReader, IsOfNoFurtherUseAfterAProblem) {
  ReplyReader reader;
  EXPECT_TRUE(read_all(reader, "?\r\n", 16).empty());
  EXPECT_FALSE(reader.problem().empty());
  EXPECT_TRUE(read_all(reader, "+OK\r\n", 16).empty());
}

}  // namespace

}  // namespace dlock::redis
