#include "backends/etcd/wire/protobuf.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace dlock::etcd {
namespace {

using namespace std::string_literals;

TEST(MessageWriterTest, LeavesOutWhatIsZeroOrEmpty) {
  EXPECT_EQ(MessageWriter().number(1, std::uint64_t{0}).bytes(2, "").flag(3, false).take(), "");
  EXPECT_EQ(MessageWriter().message(4, "").take(), "\x22\0"s);
  EXPECT_EQ(MessageWriter().flag(3, true).take(), "\x18\x01");
}

TEST(MessageReaderTest, ReadsWhatTheWriterWritesAndPassesOverTheRest) {
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  const std::string text = MessageWriter().number(1, most).number(2, std::int64_t{-1}).bytes(16, "a\0b"s).take() +
                           "\x09"s + "12345678" + "\x15" + "1234" + MessageWriter().number(3, std::int64_t{300}).take();
  MessageReader reader(text);
  ASSERT_TRUE(reader.next() && reader.field() == 1);
  EXPECT_EQ(reader.number(), most);
  ASSERT_TRUE(reader.next() && reader.field() == 2);
  EXPECT_EQ(reader.signed_number(), -1);
  ASSERT_TRUE(reader.next() && reader.field() == 16);
  EXPECT_EQ(reader.bytes(), "a\0b"s);
  ASSERT_TRUE(reader.next() && reader.next() && reader.next() && reader.field() == 3);
  EXPECT_EQ(reader.signed_number(), 300);
  EXPECT_FALSE(reader.next());
  EXPECT_FALSE(reader.broken());
}

TEST(MessageReaderTest, WhatIsNoMessageIsBroken) {
  for (const std::string& text : {
           "\x08"s,                                          // a number is missing
           "\x08\x96"s,                                      // cut off in one
           "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"s,  // one that never ends
           "\x12\x05" + "test"s,                             // shorter than it says
           "\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7f"s,      // much shorter
           "\x00\x01"s,                                      // field 0
           "\x0b"s,                                          // a group
           "\x0f"s,                                          // a type that there is not
           "\x80\x80\x80\x80\x80\x80\x01\x01"s,              // a field beyond 32 bits
           "\x09" + "1234"s,
       }) {
    MessageReader reader(text);
    while (reader.next()) {
    }
    EXPECT_TRUE(reader.broken()) << testing::PrintToString(text);
    EXPECT_FALSE(reader.next());
  }
}

TEST(MessageReaderTest, AFieldOfAnotherTypeBreaksTheMessage) {
  const std::string text = MessageWriter().number(1, std::uint64_t{5}).bytes(2, "x").take();
  MessageReader reader(text);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.bytes(), "");
  EXPECT_TRUE(reader.broken());
  MessageReader other(std::string_view(text).substr(2));
  ASSERT_TRUE(other.next());
  EXPECT_EQ(other.number(), 0U);
  EXPECT_TRUE(other.broken());
}

}  // namespace
}  // namespace dlock::etcd
