#include "backends/file/inotify.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "poll_executor.hpp"
#include "support.hpp"
#include "util/unique_fd.hpp"

namespace dlock::file::test {
namespace {

struct Listening final : Inotify::Listener {
  void on_event(std::uint32_t mask, std::string_view name) override {
    events.emplace_back(mask, std::string(name));
    if (then) then();
  }
  std::vector<std::pair<std::uint32_t, std::string>> events;
  std::function<void()> then;
};

class InotifyTest : public testing::Test {
 protected:
  [[nodiscard]] std::string make_file(const std::string& name) {
    std::string path = scratch_.path() + "/" + name;
    write_file(path, "");
    return path;
  }
  void listen(const std::string& path, std::uint32_t mask, Listening& listener, Inotify::Subscription& subscription) {
    const util::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(inotify_.subscribe(fd.get(), mask, listener, subscription), 0);
  }

  ScratchDirectory scratch_;
  PollExecutor executor_;
  Inotify inotify_{executor_};
};

TEST_F(InotifyTest, TellsEachListenerOfItsFile) {
  const auto a = make_file("a");
  const auto b = make_file("b");
  Listening of_a;
  Listening of_b;
  Inotify::Subscription sub_a;
  Inotify::Subscription sub_b;
  listen(a, IN_CLOSE_WRITE, of_a, sub_a);
  listen(b, IN_CLOSE_WRITE, of_b, sub_b);
  write_file(a, "x");
  executor_.run();
  ASSERT_EQ(of_a.events.size(), 1U);
  EXPECT_EQ(of_a.events[0].first, static_cast<std::uint32_t>(IN_CLOSE_WRITE));
  EXPECT_TRUE(of_b.events.empty());
}

TEST_F(InotifyTest, NamesTheEntryOfADirectory) {
  Listening listener;
  Inotify::Subscription subscription;
  const auto file = make_file("entry");
  listen(scratch_.path(), IN_DELETE, listener, subscription);
  ::unlink(file.c_str());
  executor_.run();
  ASSERT_EQ(listener.events.size(), 1U);
  EXPECT_EQ(listener.events[0].second, "entry");
}

TEST_F(InotifyTest, IsSilentAfterTheSubscriptionEndedEvenAboutWhatHappenedBefore) {
  const auto file = make_file("a");
  Listening listener;
  Inotify::Subscription subscription;
  listen(file, IN_CLOSE_WRITE, listener, subscription);
  write_file(file, "x");
  subscription.reset();
  executor_.run();
  EXPECT_TRUE(listener.events.empty());
}

TEST_F(InotifyTest, SharesOneFileAmongListenersUntilTheLastIsGone) {
  const auto file = make_file("a");
  Listening first;
  Listening second;
  Inotify::Subscription sub_first;
  Inotify::Subscription sub_second;
  listen(file, IN_CLOSE_WRITE, first, sub_first);
  listen(file, IN_CLOSE_WRITE, second, sub_second);
  sub_first.reset();
  write_file(file, "x");
  executor_.run();
  EXPECT_TRUE(first.events.empty());
  EXPECT_EQ(second.events.size(), 1U);
}

TEST_F(InotifyTest, RenewingASubscriptionKeepsIt) {
  const auto file = make_file("a");
  Listening listener;
  Inotify::Subscription subscription;
  listen(file, IN_CLOSE_WRITE, listener, subscription);
  Inotify::Subscription fresh;
  listen(file, IN_CLOSE_WRITE, listener, fresh);
  subscription = std::move(fresh);
  write_file(file, "x");
  executor_.run();
  EXPECT_EQ(listener.events.size(), 1U);
}

TEST_F(InotifyTest, AListenerMayEndItsOwnAndOtherSubscriptions) {
  const auto file = make_file("a");
  Listening first;
  Listening second;
  Inotify::Subscription sub_first;
  Inotify::Subscription sub_second;
  listen(file, IN_CLOSE_WRITE, first, sub_first);
  listen(file, IN_CLOSE_WRITE, second, sub_second);
  first.then = [&] {
    sub_first.reset();
    sub_second.reset();
  };
  write_file(file, "x");
  executor_.run();
  EXPECT_EQ(first.events.size(), 1U);
  EXPECT_TRUE(second.events.empty());
}

TEST_F(InotifyTest, AfterAnOverflowEverybodyIsTold) {
  const auto a = make_file("a");
  const auto b = make_file("b");
  Listening of_a;
  Listening of_b;
  Inotify::Subscription sub_a;
  Inotify::Subscription sub_b;
  listen(a, IN_ATTRIB, of_a, sub_a);
  listen(b, IN_ATTRIB, of_b, sub_b);
  const auto limit = std::stoul(read_file("/proc/sys/fs/inotify/max_queued_events"));
  if (limit > 200'000) GTEST_SKIP() << "fs.inotify.max_queued_events is too large to fill: " << limit;
  // Alternating, because the kernel merges equal events that follow each other.
  for (unsigned long i = 0; i <= limit / 2 + 1; ++i) {
    ASSERT_EQ(::chmod(a.c_str(), 0600), 0);
    ASSERT_EQ(::chmod(b.c_str(), 0600), 0);
  }
  executor_.run();
  ASSERT_FALSE(of_a.events.empty());
  ASSERT_FALSE(of_b.events.empty());
  EXPECT_NE(of_a.events.back().first & IN_Q_OVERFLOW, 0U);
  EXPECT_NE(of_b.events.back().first & IN_Q_OVERFLOW, 0U);
}

TEST_F(InotifyTest, WhenTheExecutorFailsEverybodyIsTold) {
  const auto file = make_file("a");
  Listening listener;
  Inotify::Subscription subscription;
  listen(file, IN_CLOSE_WRITE, listener, subscription);
  executor_.fail();
  ASSERT_EQ(listener.events.size(), 1U);
  EXPECT_NE(listener.events[0].first & IN_Q_OVERFLOW, 0U);
}

TEST_F(InotifyTest, AFailureLeavesTheNextCallAChance) {
  const auto file = make_file("a");
  const util::UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  Listening listener;
  Inotify::Subscription subscription;
  executor_.refuse_descriptors = true;
  EXPECT_EQ(inotify_.subscribe(fd.get(), IN_CLOSE_WRITE, listener, subscription), ENOMEM);
  EXPECT_FALSE(subscription.active());
  executor_.refuse_descriptors = false;
  EXPECT_EQ(inotify_.subscribe(-1, IN_CLOSE_WRITE, listener, subscription), ENOENT);
  EXPECT_FALSE(subscription.active());
  EXPECT_EQ(inotify_.subscribe(fd.get(), IN_CLOSE_WRITE, listener, subscription), 0);
  EXPECT_TRUE(subscription.active());
}

}  // namespace
}  // namespace dlock::file::test
