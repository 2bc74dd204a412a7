// Elections: one leader, what it says of itself, and who is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "backends/file/lock_record.hpp"
#include "member.hpp"
#include "support.hpp"

namespace dlock::file::test {
namespace {

using namespace std::chrono_literals;

class FileElectionTest : public testing::Test {
 protected:
  // An observer, which does not want to lead.
  [[nodiscard]] static std::unique_ptr<Watch> observe(Member& member, int& told) {
    auto watch = member.watch(told);
    told = 0;
    return watch;
  }
  [[nodiscard]] std::string file() const { return scratch_.locks() + "/.elect/a.lock"; }

  ScratchDirectory scratch_;
  Member one_{scratch_.locks(), LockKind::election, 1};
  Member two_{scratch_.locks(), LockKind::election, 2};
  Member three_{scratch_.locks(), LockKind::election, 3};
};

TEST_F(FileElectionTest, ShowsTheLeaderAndItsValueAsLongAsItLeads) {
  EXPECT_EQ(three_.inspect().value, "");
  for (const std::string& value :
       {std::string("10.0.0.7:80"), std::string(max_value, '%'), std::string("zwei\nZeilen \xc3\xa4"), std::string()}) {
    one_.value = value;
    EXPECT_TRUE(one_.enter());
    EXPECT_FALSE(two_.enter());
    const LockInfo info = three_.inspect();
    EXPECT_TRUE(info.held);
    EXPECT_EQ(info.kind, LockKind::election);
    EXPECT_EQ(info.holder, "host:1:l");
    EXPECT_EQ(info.value, value);
    EXPECT_EQ(info.token, one_.grants[0].token);
    EXPECT_TRUE(one_.leave());
    EXPECT_FALSE(three_.inspect().held);
    EXPECT_EQ(three_.inspect().value, "") << "it leads no more";
  }
  EXPECT_TRUE(two_.enter());
}

TEST_F(FileElectionTest, AValueOfAnEarlierLeaderIsNobodys) {
  one_.value = "old";
  EXPECT_TRUE(one_.enter() && one_.leave());
  EXPECT_TRUE(two_.enter());
  EXPECT_EQ(three_.inspect().value, "");
  std::string text = read_file(file());
  const std::string stale = format_value(OwnerId(1, 1), "old");
  text.replace(record_end, stale.size(), stale);
  text.resize(record_end + stale.size());
  write_file(file(), text);
  const LockInfo info = three_.inspect();
  EXPECT_FALSE(info.held) << "as while a leader writes who it is";
  EXPECT_EQ(info.holder, "");
  EXPECT_EQ(info.value, "");
}

TEST_F(FileElectionTest, WhoWatchesIsToldOfEachChange) {
  int told = 0;
  const auto watch = observe(two_, told);
  EXPECT_TRUE(one_.enter());
  two_.executor.run();
  EXPECT_GE(told, 1) << "somebody got it";
  told = 0;
  EXPECT_TRUE(one_.leave());
  two_.executor.run();
  EXPECT_GE(told, 1) << "nobody leads";
  told = 0;
  EXPECT_TRUE(two_.enter());
  two_.executor.run();
  EXPECT_GE(told, 1) << "its own client leads";
  told = 0;
  EXPECT_TRUE(two_.leave());
  two_.executor.run();
  EXPECT_GE(told, 1);
  told = 0;
  (void)three_.inspect();
  two_.executor.run();
  EXPECT_EQ(told, 0) << "by a question";
}

TEST_F(FileElectionTest, AWatchMayEndInsideItsCall) {
  EXPECT_TRUE(one_.enter());
  int told = 0;
  std::unique_ptr<Watch> first;
  std::unique_ptr<Watch> second;
  const auto end_both = [&] {
    ++told;
    first.reset();
    second.reset();
  };
  first = two_.backend.watch(LockKind::election, "a", end_both);
  second = two_.backend.watch(LockKind::election, "a", end_both);
  EXPECT_TRUE(one_.leave());
  two_.executor.run();
  EXPECT_EQ(told, 1);
  EXPECT_EQ(open_descriptors("/a.lock"), 0U);
}

TEST_F(FileElectionTest, AWatchThatIsMadeAnewInsideItsCallIsNotCalledForTheSameChange) {
  EXPECT_TRUE(one_.enter());
  int told = 0;
  std::unique_ptr<Watch> watch;
  std::function<void()> again = [&] {
    ++told;
    watch.reset();
    if (told < 100) watch = two_.backend.watch(LockKind::election, "a", again);
  };
  watch = two_.backend.watch(LockKind::election, "a", again);
  two_.executor.run();
  const int before = told;
  Member four(scratch_.locks(), LockKind::election, 4);
  EXPECT_TRUE(one_.leave());
  EXPECT_TRUE(four.enter());
  two_.executor.run();
  EXPECT_GT(told, before);
  EXPECT_LT(told, 20);
}

TEST_F(FileElectionTest, WithoutInotifyWhoWatchesIsToldToLookNowAndThen) {
  two_.executor.refuse_descriptors = true;
  int told = 0;
  const auto watch = observe(two_, told);
  EXPECT_TRUE(one_.enter());
  two_.executor.advance(150ms);
  EXPECT_GE(told, 1);
}

}  // namespace
}  // namespace dlock::file::test
