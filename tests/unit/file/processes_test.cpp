// Several processes: what the backend is for.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "support.hpp"

namespace dlock::file::test {
namespace {

using namespace std::chrono_literals;

class FileProcessesTest : public testing::Test {
 protected:
  [[nodiscard]] std::string held_line(Helper& helper) {
    EXPECT_EQ(helper.line(), "waiting");
    return helper.line();
  }
  // The token in a line "held TOKEN ...".
  [[nodiscard]] static std::uint64_t token_in(const std::string& line) {
    return line.rfind("held ", 0) == 0 ? std::stoull(line.substr(5)) : 0;
  }
  // Waits for "a" in this process with a clock that only the test moves.
  [[nodiscard]] std::future<FencingToken> wait_for_lock(const Client& client) {
    auto granted = std::make_shared<std::promise<FencingToken>>();
    client.make_lock("a").async_acquire(
        {}, [granted](std::error_code, const Lease& lease) { granted->set_value(lease.token()); });
    (void)client.inspect("a");
    return granted->get_future();
  }

  ScratchDirectory scratch_;
};

TEST_F(FileProcessesTest, AKilledHolderFreesItsLockLongBeforeAnyPolling) {
  for (int i = 0; i < 20; ++i) {
    const auto clock = std::make_shared<ManualClock>();
    const auto client = connect(scratch_.url(), {.clock = clock});
    Helper holder({"hold", scratch_.url(), "a"});
    const auto first = token_in(held_line(holder));
    ASSERT_NE(first, 0U);
    auto granted = wait_for_lock(client);
    holder.kill();
    // The contention's own polling begins after 500 ms; what is needed here is the event and, at most, another look.
    EXPECT_TRUE(advance_until(*clock, 200ms, [&] { return granted.wait_for(0s) == std::future_status::ready; }));
    ASSERT_EQ(granted.wait_for(0s), std::future_status::ready);
    EXPECT_NE(granted.get().value(), 0U);
  }
}

TEST_F(FileProcessesTest, AForkedChildDoesNotKeepItsParentsLock) {
  Helper parent({"fork", scratch_.url(), "a"});
  const std::set<std::string> lines = {parent.line(), parent.line()};
  ASSERT_EQ(lines.count("alive"), 1U);
  const auto forked =
      std::find_if(lines.begin(), lines.end(), [](const std::string& line) { return line.rfind("forked ", 0) == 0; });
  ASSERT_NE(forked, lines.end());
  const pid_t child = std::stoi(forked->substr(7));
  const auto client = connect(scratch_.url());
  EXPECT_FALSE(client.make_lock("a").try_acquire().has_value());
  parent.kill();
  (void)parent.wait();
  EXPECT_TRUE(client.make_lock("a").try_acquire_for(hang_guard).has_value());
  EXPECT_EQ(::kill(child, 0), 0) << "the child did not live long enough to prove anything";
}

TEST_F(FileProcessesTest, TheDeathOfOneReaderOfTwoLeavesTheOtherAndThatOfBothLetsAWriterIn) {
  const auto clock = std::make_shared<ManualClock>();
  const auto client = connect(scratch_.url(), {.clock = clock});
  Helper one({"hold", scratch_.url(), "a", "read"});
  Helper two({"hold", scratch_.url(), "a", "read"});
  EXPECT_NE(token_in(held_line(one)), 0U);
  EXPECT_NE(token_in(held_line(two)), 0U);
  EXPECT_EQ(client.inspect("a", LockKind::read_write).holders.size(), 2U);
  std::promise<bool> granted;
  auto entered = granted.get_future();
  client.make_read_write_lock("a").async_acquire({}, [&](std::error_code ec, const Lease&) { granted.set_value(!ec); });
  one.kill();
  EXPECT_EQ(one.wait(), -1);
  EXPECT_FALSE(advance_until(*clock, 100ms, [&] { return entered.wait_for(0s) == std::future_status::ready; }));
  EXPECT_EQ(client.inspect("a", LockKind::read_write).holders.size(), 1U);
  two.kill();
  EXPECT_TRUE(advance_until(*clock, 200ms, [&] { return entered.wait_for(0s) == std::future_status::ready; }));
}

TEST_F(FileProcessesTest, AKilledWriterWhoWaitedLetsReadersIn) {
  const auto client = connect(scratch_.url());
  auto lock = client.make_read_write_lock("a");
  const auto reading = lock.acquire_shared();
  Helper writer({"hold", scratch_.url(), "a", "write"});
  EXPECT_EQ(writer.line(), "waiting");
  const auto end = std::chrono::steady_clock::now() + hang_guard;
  while (lock.try_acquire_shared() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_FALSE(lock.try_acquire_shared()) << "the writer does not wait yet";
  writer.kill();
  EXPECT_TRUE(lock.try_acquire_shared_for(hang_guard).has_value());
}

TEST_F(FileProcessesTest, APermitOfAKilledHolderComesBackLongBeforeAnyPolling) {
  const auto clock = std::make_shared<ManualClock>();
  const auto client = connect(scratch_.url(), {.clock = clock});
  Helper holder({"hold", scratch_.url(), "a", "permit"});
  EXPECT_NE(token_in(held_line(holder)), 0U);
  std::promise<bool> granted;
  auto entered = granted.get_future();
  client.make_semaphore("a", 1).async_acquire({}, [&](std::error_code ec, const Lease&) { granted.set_value(!ec); });
  (void)client.inspect("a", LockKind::semaphore);
  holder.kill();
  EXPECT_TRUE(advance_until(*clock, 200ms, [&] { return entered.wait_for(0s) == std::future_status::ready; }));
}

TEST_F(FileProcessesTest, AForkedChildKeepsNoneOfTheSharesOfItsParent) {
  for (const std::string kind : {"read", "permit"}) {
    Helper parent({"fork", scratch_.url(), "a", kind});
    EXPECT_NE(parent.line(), "");
    EXPECT_NE(parent.line(), "");
    parent.kill();
    (void)parent.wait();
    const auto client = connect(scratch_.url());
    EXPECT_TRUE(client.make_read_write_lock("a").try_acquire_for(hang_guard).has_value());
    EXPECT_TRUE(client.make_semaphore("a", 2).try_acquire_for(hang_guard).has_value());
  }
}

TEST_F(FileProcessesTest, AProgramThatIsStartedInheritsNothing) {
  const auto client = connect(scratch_.url());
  const auto lease = client.make_lock("a").acquire();
  const auto other = connect(scratch_.url());
  other.make_lock("a").async_acquire({}, [](std::error_code, const Lease&) {});
  (void)other.inspect("a");
  Helper program({"descriptors"});
  std::string line;
  int lines = 0;
  while ((line = program.line()) != "end") {
    ASSERT_FALSE(line.empty());
    ++lines;
    EXPECT_EQ(line.find(scratch_.path()), std::string::npos) << line;
    EXPECT_EQ(line.find("inotify"), std::string::npos) << line;
    EXPECT_EQ(line.find("eventpoll"), std::string::npos) << line;
    EXPECT_EQ(line.find("timerfd"), std::string::npos) << line;
  }
  EXPECT_GE(lines, 2) << "its standard streams at least";
}

}  // namespace
}  // namespace dlock::file::test
