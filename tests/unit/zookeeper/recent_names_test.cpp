#include "backends/zookeeper/strategies/recent_names.hpp"

#include <gtest/gtest.h>

#include <string>

namespace dlock::zookeeper {

namespace {

// Of one client that tries many names in turn, again and again, as good as all are remembered.
TEST(RecentNamesTest, TooManyAreForgottenOneByOne) {
  RecentNames names;
  int forgotten = 0;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 1001; ++i) {
      const std::string name = std::to_string(i);
      if (round > 0 && !names.contains(name)) ++forgotten;
      names.add(name);
    }
  }
  EXPECT_LE(forgotten, 10);
}

TEST(RecentNamesTest, WhatIsRemovedIsForgotten) {
  RecentNames names;
  names.remove("a");
  names.add("a");
  EXPECT_TRUE(names.contains("a"));
  names.remove("a");
  EXPECT_FALSE(names.contains("a"));
}

}  // namespace

}  // namespace dlock::zookeeper
