#include "backends/file/inotify.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "poll_executor.hpp"
#include "support.hpp"
#include "util/unique_fd.hpp"

namespace dlock::file::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

// A subscription that keeps its events.
struct Listening {
  std::vector<std::pair<std::uint32_t, std::string>> events = {};
  std::function<void()> then = [] {};
  Inotify::Subscription subscription = {};
};

class InotifyTest : public testing::Test {
 protected:
  InotifyTest() {
    for (const auto& path : {a_, b_}) write_file(path, "");
  }
  int listen(const std::string& path, std::uint32_t mask, Listening& listening) {
    const util::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    return inotify_.subscribe(fd.get(), mask, listening.subscription,
                              [&listening](std::uint32_t event, std::string_view entry) {
                                listening.events.emplace_back(event, entry);
                                listening.then();
                              });
  }
  void write_to(const std::string& path) {
    write_file(path, "x");
    executor_.run();
  }

  ScratchDirectory scratch_;
  const std::string a_ = scratch_.path() + "/a";
  const std::string b_ = scratch_.path() + "/b";
  PollExecutor executor_;
  Inotify inotify_{executor_};
  Listening first_;
  Listening second_;
};

TEST_F(InotifyTest, SubscriptionEnded_ReportsNoEarlierEvents) {
  ASSERT_EQ(listen(a_, IN_CLOSE_WRITE, first_), 0);
  write_file(a_, "x");
  first_.subscription.reset();
  executor_.run();
  EXPECT_THAT(first_.events, IsEmpty());
}

TEST_F(InotifyTest, SharedFile_IsWatchedUntilTheLastEnds) {
  ASSERT_EQ(listen(a_, IN_CLOSE_WRITE, first_), 0);
  ASSERT_EQ(listen(a_, IN_CLOSE_WRITE, second_), 0);
  first_.subscription.reset();
  write_to(a_);
  EXPECT_THAT(first_.events, IsEmpty());
  EXPECT_EQ(second_.events.size(), 1U);
}

TEST_F(InotifyTest, Subscription_MayBeRenewedOrMoved) {
  for (int i = 0; i < 2; ++i) ASSERT_EQ(listen(a_, IN_CLOSE_WRITE, first_), 0);
  write_to(a_);
  EXPECT_EQ(first_.events.size(), 1U);
  ASSERT_EQ(listen(b_, IN_CLOSE_WRITE, first_), 0);
  write_to(a_);
  EXPECT_EQ(first_.events.size(), 1U);
  write_to(b_);
  EXPECT_EQ(first_.events.size(), 2U);
}

TEST_F(InotifyTest, Handler_MayEndAnySubscription) {
  ASSERT_EQ(listen(a_, IN_CLOSE_WRITE, first_), 0);
  ASSERT_EQ(listen(a_, IN_CLOSE_WRITE, second_), 0);
  first_.then = [&] {
    first_.subscription.reset();
    second_.subscription.reset();
  };
  write_to(a_);
  EXPECT_EQ(first_.events.size(), 1U);
  EXPECT_THAT(second_.events, IsEmpty());
}

TEST_F(InotifyTest, ExecutorFails_AllAreNotified) {
  ASSERT_EQ(listen(a_, IN_CLOSE_WRITE, first_), 0);
  ASSERT_EQ(listen(b_, IN_CLOSE_WRITE, second_), 0);
  executor_.fail();
  for (const Listening* each : {&first_, &second_}) {
    EXPECT_THAT(each->events, ElementsAre(Pair(IN_Q_OVERFLOW, "")));
  }
}

TEST_F(InotifyTest, AfterAFailure_NextCallSucceeds) {
  executor_.refuse_descriptors = true;
  EXPECT_EQ(listen(a_, IN_CLOSE_WRITE, first_), ENOMEM);
  EXPECT_FALSE(first_.subscription.active());
  executor_.refuse_descriptors = false;
  EXPECT_EQ(listen("nowhere", IN_CLOSE_WRITE, first_), ENOENT);
  EXPECT_FALSE(first_.subscription.active());
  EXPECT_EQ(listen(a_, IN_CLOSE_WRITE, first_), 0);
  EXPECT_TRUE(first_.subscription.active());
  EXPECT_EQ(listen("nowhere", IN_CLOSE_WRITE, first_), ENOENT);
  EXPECT_FALSE(first_.subscription.active()) << "of the file before";
}

}  // namespace
}  // namespace dlock::file::test
