// Who is woken, and when: members that the test drives step by step, against a lock that it takes and frees with bare
// system calls. No timer fires unless the test says so, so a wake-up that comes has come through an event.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <system_error>
#include <thread>

#include "backends/file/lock_file.hpp"
#include "member.hpp"
#include "support.hpp"
#include "torture/rig/sanitizers.hpp"
#include "util/unique_fd.hpp"

namespace dlock::file::test {
namespace {

using namespace std::chrono_literals;

class FileWaitingTest : public testing::Test {
 protected:
  FileWaitingTest() { EXPECT_TRUE(take_lock(stranger_.get(), file_).ok()); }

  void release_by_stranger() {
    drop_lock(stranger_.get());
    stranger_.reset();
  }
  // The kernel reports this like the close of a holder's.
  void close_another_descriptor() { util::UniqueFd(::open(file_.c_str(), O_RDWR | O_CLOEXEC)).reset(); }

  ScratchDirectory scratch_;
  Member member_{scratch_.locks(), LockKind::lock, 1};
  const std::string file_ = scratch_.locks() + "/a.lock";
  util::UniqueFd stranger_{::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
};

TEST_F(FileWaitingTest, OnlyTheFirstWaiterIsWokenAndPassesTheWakeUpOnWhenItGoesWithoutATry) {
  int first = 0;
  int second = 0;
  int third = 0;
  auto one = member_.watch(first);
  const auto two = member_.watch(second);
  auto three = member_.watch(third);
  three.reset();
  member_.executor.run();
  EXPECT_EQ(first, 0) << "by a waiter that goes from behind";
  release_by_stranger();
  member_.executor.run();
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 0);
  one.reset();
  member_.executor.run();
  EXPECT_EQ(second, 1);
}

TEST_F(FileWaitingTest, WaitersOfOneClientAreServedInTheirOrderEachWithOneWakeUp) {
  std::deque<Waiting> waiters;
  for (int i = 0; i < 20; ++i) waiters.emplace_back(member_);
  const auto tries_to_wait = member_.backend.kernel_tries();
  release_by_stranger();
  for (; !waiters.empty(); waiters.pop_front()) {
    EXPECT_TRUE(waiters.front().in());
    for (std::size_t i = 1; i < waiters.size(); ++i) EXPECT_FALSE(waiters[i].in());
    EXPECT_TRUE(waiters.front().leave());
  }
  EXPECT_EQ(member_.backend.kernel_tries() - tries_to_wait, 20U);
  EXPECT_LE(member_.backend.wake_ups(), 40U);
}

TEST_F(FileWaitingTest, AReleaseByTheirOwnClientWakesThemAtOnceAlsoWithoutInotify) {
  for (const bool without_inotify : {false, true}) {
    Member client(scratch_.locks(), LockKind::lock, 2);
    client.executor.refuse_descriptors = without_inotify;
    drop_lock(stranger_.get());
    ASSERT_TRUE(client.enter());
    int woken = 0;
    const auto watch = client.watch(woken);
    ASSERT_EQ(woken, 0);
    EXPECT_TRUE(client.leave());
    client.executor.run();
    EXPECT_EQ(woken, 1);
    EXPECT_EQ(client.host.warnings.size(), without_inotify ? 1U : 0U) << "for the directory and the file";
  }
}

TEST_F(FileWaitingTest, WithoutInotifyAWakeUpComesWithin150Milliseconds) {
  member_.executor.refuse_descriptors = true;
  int woken = 0;
  const auto watch = member_.watch(woken);
  member_.executor.advance(1s);
  EXPECT_EQ(woken, 0);
  stranger_.reset();
  member_.executor.advance(150ms);
  EXPECT_GE(woken, 1);
}

TEST_F(FileWaitingTest, AWakeUpComesALittleLaterWhenTheKernelReportsBeforeItRemovesTheLock) {
  // As for a killed holder: the event first, the lock's removal after it and without another event.
  for (const auto delay : {1ms, 4ms, 16ms, 64ms}) {
    int woken = 0;
    const auto watch = member_.watch(woken);
    close_another_descriptor();
    member_.executor.advance(delay - 1ms);
    EXPECT_EQ(woken, 0);
    drop_lock(stranger_.get());
    member_.executor.advance(64ms);
    EXPECT_GE(woken, 1) << delay.count();
    ASSERT_TRUE(take_lock(stranger_.get(), file_).ok());
  }
}

TEST_F(FileWaitingTest, TriesOnABusyLockAndQuestionsWakeNobody) {
  int woken = 0;
  const auto watch = member_.watch(woken);
  member_.executor.advance(1s);
  const auto looks = member_.backend.looks();
  for (int i = 0; i < 10; ++i) {
    Member other(scratch_.locks(), LockKind::lock, 2);
    EXPECT_FALSE(other.enter());
    (void)other.inspect();
    (void)other.list();
    (void)other.forget();
  }
  member_.executor.run();
  EXPECT_EQ(member_.backend.looks(), looks) << "a busy try made an event";
  EXPECT_EQ(woken, 0);
}

TEST_F(FileWaitingTest, ABusyLockIsCheckedAFewTimesAfterAnEventAndThenLeftAlone) {
  int woken = 0;
  const auto watch = member_.watch(woken);
  member_.executor.advance(1s);
  const auto looks = member_.backend.looks();
  close_another_descriptor();
  member_.executor.advance(1h);
  EXPECT_EQ(member_.backend.looks() - looks, 5U) << "at once, and after 1, 4, 16 and 64 ms";
  EXPECT_EQ(woken, 0);
}

TEST_F(FileWaitingTest, ClientsThatWaitForOneLockDoNotWakeEachOther) {
  constexpr std::size_t clients = 8;
  std::deque<Member> members;
  std::deque<Waiting> waiters;
  for (std::size_t i = 0; i < clients; ++i) {
    waiters.emplace_back(members.emplace_back(scratch_.locks(), LockKind::lock, i + 2));
  }
  release_by_stranger();
  for (std::size_t left = clients; left > 0; --left) {
    const auto winner = std::ranges::find_if(waiters, [](Waiting& each) { return each.in(); });
    ASSERT_NE(winner, waiters.end()) << left << " still wait";
    for (Member& each : members) each.executor.run();
    EXPECT_TRUE(winner->leave());
    winner->outcome.status = TryOutcome::Status::failed;
  }
  // A try when the wait begins, one when the watch stands, and at most one for each of the releases.
  for (const Member& each : members) EXPECT_LE(each.backend.kernel_tries(), 2U + clients);
}

TEST_F(FileWaitingTest, ACancelledWaiterLeavesNothingBehind) {
  Waiting waiter(member_);
  EXPECT_EQ(open_descriptors("/a.lock"), 2U);
  waiter.give_up();
  member_.executor.run();
  EXPECT_EQ(open_descriptors("/a.lock"), 1U) << "more than the holder's";
  release_by_stranger();
  EXPECT_TRUE(member_.enter());
}

TEST_F(FileWaitingTest, ATimedWaitEndsAndLeavesTheOthersWaiting) {
  Waiting waiter(member_);
  for (const std::uint64_t number : {1U, 2U}) {
    const auto client = connect(scratch_.url());
    EXPECT_FALSE(client.make_lock("a").try_acquire_for(20ms).has_value()) << number;
  }
  EXPECT_FALSE(waiter.in());
  release_by_stranger();
  EXPECT_TRUE(waiter.in());
}

TEST_F(FileWaitingTest, ManyWaitersShareOneDescriptor) {
  constexpr int waiters = rig::sanitized ? 2'000 : 10'000;
  std::atomic<int> count = 0;
  std::promise<void> all;
  const auto client = connect(scratch_.url(), {.clock = std::make_shared<ManualClock>()});
  auto lock = client.make_lock("a");
  const auto before = open_descriptors();
  for (int i = 0; i < waiters; ++i) {
    lock.async_acquire({}, [&](std::error_code ec, const Lease& won) {
      if (!ec && won.held() && ++count == waiters) all.set_value();
    });
  }
  while (client.stats().waiting < waiters) std::this_thread::yield();
  EXPECT_LE(open_descriptors(), before + 2);
  release_by_stranger();
  EXPECT_EQ(all.get_future().wait_for(hang_guard * 2), std::future_status::ready) << count << " were granted";
}

TEST_F(FileWaitingTest, AnOverflowOfTheEventQueueLosesNoWakeUp) {
  const auto limit = std::stoul(read_file("/proc/sys/fs/inotify/max_queued_events"));
  if (limit > 200'000) GTEST_SKIP() << "fs.inotify.max_queued_events is too large to fill: " << limit;
  ASSERT_TRUE(member_.enter(Mode::exclusive, "another"));  // so that the directory is watched
  Waiting waiter(member_);
  for (unsigned long i = 0; i <= limit; ++i) {
    const std::string file = scratch_.locks() + "/stranger-" + std::to_string(i % 2);
    write_file(file, "");
    std::filesystem::remove(file);
  }
  release_by_stranger();
  EXPECT_TRUE(waiter.in());
}

TEST_F(FileWaitingTest, AReleaseFreesTheLockBeforeItWakesWaiters) {
  for (const LockKind kind : {LockKind::lock, LockKind::read_write, LockKind::semaphore}) {
    const ScratchDirectory scratch;
    const std::string file = scratch.locks() + subdirectory(kind) + "/a.lock";
    Member holder(scratch.locks(), kind, 2);
    ASSERT_TRUE(holder.enter());
    // With a second descriptor of the same open file, closing alone would free nothing.
    util::UniqueFd duplicate;
    for (int fd = 3; fd < 256 && !duplicate; ++fd) {
      std::error_code none;
      const auto target = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), none);
      if (target == file) duplicate = util::UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    }
    ASSERT_TRUE(duplicate);
    EXPECT_TRUE(holder.leave());
    EXPECT_TRUE(Member(scratch.locks(), kind, 3).enter());
  }
}

}  // namespace
}  // namespace dlock::file::test
