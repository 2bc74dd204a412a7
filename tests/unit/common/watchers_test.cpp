#include "backends/common/watchers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/manual_engine.hpp"

namespace dlock::common {

namespace {

using testing::ElementsAre;

class WatchersTest : public testing::Test {
 protected:
  std::unique_ptr<Watch> watch(const std::string& key, const std::string& who) {
    return watchers.watch(key, [this, who] { told.push_back(who); });
  }

  test::ManualEngine engine;
  std::vector<std::string> left;
  std::vector<std::string> told;
  Watchers watchers{engine, [this](const std::string& key) { left.push_back(key); }};
};

TEST_F(WatchersTest, AllOfAKeyAreToldInTheOrderInWhichTheyCame) {
  const auto first = watch("a", "first");
  const auto other = watch("b", "other");
  const auto second = watch("a", "second");
  EXPECT_EQ(watchers.count("a"), 2U);
  watchers.tell_all("a");
  EXPECT_THAT(told, ElementsAre("first", "second"));
  watchers.tell_all("c");
  EXPECT_EQ(told.size(), 2U);
  watchers.tell_all();
  EXPECT_EQ(told.size(), 5U);
}

TEST_F(WatchersTest, TheKeyIsLeftWithTheLastOne) {
  auto first = watch("a", "first");
  auto second = watch("a", "second");
  first.reset();
  EXPECT_TRUE(left.empty());
  second.reset();
  EXPECT_THAT(left, ElementsAre("a"));
  EXPECT_TRUE(watchers.empty());
}

TEST_F(WatchersTest, WhoeverIsToldMayEndWatchesAndBeginOthers) {
  std::unique_ptr<Watch> third;
  std::unique_ptr<Watch> late;
  std::unique_ptr<Watch> first = watchers.watch("a", [&] {
    told.emplace_back("first");
    third.reset();
    late = watch("a", "late");
    first.reset();
  });
  const auto second = watch("a", "second");
  third = watch("a", "third");
  watchers.tell_all("a");
  EXPECT_THAT(told, ElementsAre("first", "second"));
  watchers.tell_all("a");
  EXPECT_THAT(told, ElementsAre("first", "second", "second", "late"));
}

TEST_F(WatchersTest, TheLastOneMayLeaveAsItIsTold) {
  std::unique_ptr<Watch> only = watchers.watch("a", [&] { only.reset(); });
  watchers.tell_first("a");
  EXPECT_THAT(left, ElementsAre("a"));
  only = watchers.watch("a", [&] { only.reset(); });
  watchers.tell_any();
  EXPECT_THAT(left, ElementsAre("a", "a"));
  watchers.tell_any();  // nobody
}

TEST_F(WatchersTest, TheNextOneIsToldWhenTheFirstLeavesWithoutHavingTaken) {
  auto first = watch("a", "first");
  auto second = watch("a", "second");
  const auto third = watch("a", "third");
  watchers.tell_first("a");
  EXPECT_THAT(told, ElementsAre("first"));
  first.reset();
  engine.run();
  EXPECT_THAT(told, ElementsAre("first", "second"));
  watchers.taken("a");
  second.reset();
  engine.run();
  EXPECT_THAT(told, ElementsAre("first", "second")) << "it was taken";
  watchers.taken("b");
}

TEST_F(WatchersTest, OneWhoWasNotToldLeavesInSilence) {
  const auto first = watch("a", "first");
  auto second = watch("a", "second");
  watchers.tell_first("a");
  second.reset();
  engine.run();
  EXPECT_THAT(told, ElementsAre("first"));
}

}  // namespace

}  // namespace dlock::common
