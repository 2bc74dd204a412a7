// Which slot a key is in. The values are those of the cluster specification, and of CLUSTER KEYSLOT.
#include "backends/redis/hash_slot.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dlock::redis {

namespace {

TEST(RedisHashSlot, IsTheCrcOfTheKey) {
  EXPECT_EQ(slot_of("123456789"), 0x31c3 % slots);
  EXPECT_EQ(slot_of("123456789"), 12739);
  EXPECT_EQ(slot_of("foo"), 12182);
  EXPECT_EQ(slot_of("bar"), 5061);
  EXPECT_EQ(slot_of(""), 0);
}

TEST(RedisHashSlot, BytesBeyondAsciiAndZeroCount) {
  EXPECT_NE(slot_of("\xc3\xa4"), slot_of("\xc3\xb6"));
  EXPECT_NE(slot_of(std::string_view("a\0", 2)), slot_of("a"));
  EXPECT_NE(slot_of(std::string_view("a\0b", 3)), slot_of(std::string_view("a\0c", 3)));
}

TEST(RedisHashSlot, OnlyAHashTagIsHashed) {
  const std::vector<std::pair<std::string_view, std::string_view>> cases = {
      {"{user1000}.following", "user1000"},
      {"foo{}{bar}", "foo{}{bar}"},
      {"foo{{bar}}zap", "{bar"},
      {"foo{bar}{zap}", "bar"},
      {"", ""},
      {"{}", "{}"},
      {"{", "{"},
      {"}", "}"},
      {"a}b{c}", "c"},
      {"}{", "}{"},
      {"a{b", "a{b"},
      {"a{b}", "b"},
      {"{ }", " "},
  };
  for (const auto& [key, hashed] : cases) EXPECT_EQ(hashed_part(key), hashed) << key;
  EXPECT_EQ(slot_of("{user1000}.following"), slot_of("user1000"));
  EXPECT_EQ(slot_of("foo{bar}{zap}"), 5061);
  EXPECT_NE(slot_of("foo{}{bar}"), slot_of("bar"));
}

TEST(RedisHashSlot, AllKeysHaveOneThatExists) {
  for (int i = 0; i < 1000; ++i) EXPECT_LT(slot_of("lock/" + std::to_string(i)), slots);
}

TEST(RedisHashSlot, BracesAreOfUseWhereAClosingOneEndsATagOrComesBehindOne) {
  for (const char* key : {"", "a", "{", "a{b", "{t}", "a{t}b", "{t}}", "}{t}", "{{t}", "{t}{}"}) {
    EXPECT_TRUE(has_usable_braces(key)) << key;
  }
  for (const char* key : {"}", "a}", "{}", "a{}b{c}", "}{", "a}b"}) EXPECT_FALSE(has_usable_braces(key)) << key;
}

}  // namespace

}  // namespace dlock::redis
