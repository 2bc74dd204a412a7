#include "backends/zookeeper/strategies/recent_names.hpp"

#include <gtest/gtest.h>

#include <string>

namespace dlock::zookeeper {

namespace {

TEST(RecentNamesTest, RecentNames_BeyondTheirLimit_BeginAnew) {
  RecentNames names;
  names.remove("0");
  for (int i = 0; i < 1000; ++i) names.add(std::to_string(i));
  names.remove("7");
  names.add("7");
  EXPECT_TRUE(names.contains("0"));
  EXPECT_TRUE(names.contains("7"));
  names.remove("7");
  EXPECT_FALSE(names.contains("7"));
  for (int i = 0; i < 2; ++i) names.add(std::to_string(1000 + i));
  EXPECT_FALSE(names.contains("0"));
  EXPECT_TRUE(names.contains("1001"));
}

}  // namespace

}  // namespace dlock::zookeeper
