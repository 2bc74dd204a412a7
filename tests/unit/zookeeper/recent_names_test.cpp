#include "backends/zookeeper/strategies/recent_names.hpp"

#include <gtest/gtest.h>

#include <string>

namespace dlock::zookeeper {

namespace {

TEST(RecentNamesTest, RecentNames_BeyondTheirLimit_ForgetTheOldestNames) {
  RecentNames names;
  // The oldest names are not those that come first or last in the alphabet.
  const auto name = [](int i) { return std::to_string(i * 7919 % 2003); };
  for (int i = 0; i < 1500; ++i) names.add(name(i));
  names.add(name(500));
  names.add(name(1500));
  for (int i = 0; i < 500; ++i) EXPECT_FALSE(names.contains(name(i))) << i;
  EXPECT_TRUE(names.contains(name(500))) << "added again";
  EXPECT_FALSE(names.contains(name(501)));
  for (int i = 502; i <= 1500; ++i) EXPECT_TRUE(names.contains(name(i))) << i;
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
