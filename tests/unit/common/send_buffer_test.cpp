#include "backends/common/send_buffer.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

namespace dlock::common {

namespace {

constexpr std::size_t much = std::size_t{1} << 20;

TEST(SendBufferTest, Bytes_LeaveInOrder) {
  SendBuffer buffer;
  std::string taken;
  for (int i = 0; i < 100; ++i) {
    buffer.end() += std::to_string(i);
    const std::size_t count = buffer.size() / 2;
    taken += buffer.bytes().substr(0, count);
    buffer.remove(count);
  }
  taken += buffer.bytes();
  std::string all;
  for (int i = 0; i < 100; ++i) all += std::to_string(i);
  EXPECT_EQ(taken, all);
}

TEST(SendBufferTest, AlwaysABacklog_MemoryFollowsIt) {
  SendBuffer buffer;
  buffer.end() += std::string(much / 16, 'x');
  for (int i = 0; i < 1000; ++i) {
    buffer.end() += std::string(much / 64, 'x');
    buffer.remove(much / 64);
    ASSERT_LE(buffer.capacity(), much) << "after " << i << " turns";
  }
  EXPECT_EQ(buffer.size(), much / 16);
}

TEST(SendBufferTest, WhenALargeBacklogIsSent_MemoryIsGivenBack) {
  SendBuffer buffer;
  buffer.end() += std::string(much, 'x');
  buffer.remove(much - 1);
  EXPECT_LE(buffer.capacity(), most_kept_bytes);
  buffer.end() += std::string(much, 'x');
  buffer.remove(buffer.size());
  EXPECT_LE(buffer.capacity(), most_kept_bytes);
}

TEST(SendBufferTest, WhenASmallBacklogIsSent_MemoryIsKept) {
  SendBuffer buffer;
  buffer.end() += std::string(1000, 'x');
  buffer.remove(1000);
  EXPECT_GE(buffer.capacity(), 1000U);
}

}  // namespace

}  // namespace dlock::common
