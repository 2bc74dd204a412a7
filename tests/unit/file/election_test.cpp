// Elections: one leader, what it says of itself, and who is told.
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
  [[nodiscard]] std::string file() const { return scratch_.locks() + "/.elect/a.lock"; }

  ScratchDirectory scratch_;
  Member one_{scratch_.locks(), LockKind::election, 1};
  Member two_{scratch_.locks(), LockKind::election, 2};
  Member three_{scratch_.locks(), LockKind::election, 3};
};

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

TEST_F(FileElectionTest, AnObserverIsNotifiedOfEachChangeAndOfNoQuestion) {
  int told = 0;
  const auto watch = two_.watch(told);
  const auto notified = [&](bool done) {
    told = 0;
    two_.executor.run();
    return done && told > 0;
  };
  for (Member* each : {&one_, &two_}) {
    EXPECT_TRUE(notified(each->enter())) << "a new leader";
    EXPECT_TRUE(notified(each->leave())) << "nobody leads";
  }
  EXPECT_FALSE(notified(three_.inspect().token.value() > 0));
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

TEST_F(FileElectionTest, WithoutInotifyAnObserverIsNotifiedNowAndThen) {
  two_.executor.refuse_descriptors = true;
  int told = 0;
  const auto watch = two_.watch(told);
  told = 0;
  EXPECT_TRUE(one_.enter());
  two_.executor.advance(150ms);
  EXPECT_GE(told, 1);
}

}  // namespace
}  // namespace dlock::file::test
