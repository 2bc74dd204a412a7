#include "backends/redis/connection/command.hpp"

#include <gtest/gtest.h>

#include <string>

namespace dlock::redis {

namespace {

TEST(RedisCommand, IsAnArrayOfItsWords) {
  Command command{"SET", "key"};
  command.add("");
  EXPECT_EQ(command.bytes(), "*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$0\r\n\r\n");
}

TEST(RedisCommand, CountsBytesAndKeepsThemAsTheyAre) {
  const std::string word("a\r\n\0$", 5);
  EXPECT_EQ(Command{word}.bytes(), "*1\r\n$5\r\n" + word + "\r\n");
  const std::string long_word(70'000, 'x');
  EXPECT_EQ(Command{long_word}.bytes(), "*1\r\n$70000\r\n" + long_word + "\r\n");
}

TEST(RedisCommand, MayBePutBehindOtherWordsAndBehindWhatIsThere) {
  std::string out = "+";
  Command{"1", "key"}.append_to(out, {"EVALSHA", "0123"});
  EXPECT_EQ(out, "+*4\r\n$7\r\nEVALSHA\r\n$4\r\n0123\r\n$1\r\n1\r\n$3\r\nkey\r\n");
}

}  // namespace

}  // namespace dlock::redis
