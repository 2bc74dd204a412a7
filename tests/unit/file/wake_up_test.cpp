// Who is woken, and when: the backend alone, driven step by step on one thread, against a lock that the test takes and
// frees with bare system calls.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "backends/file/lock_file.hpp"
#include "poll_executor.hpp"
#include "support.hpp"
#include "util/unique_fd.hpp"

namespace dlock::file::test {
namespace {

using namespace std::chrono_literals;

class FileWakeUpTest : public testing::Test {
 protected:
  FileWakeUpTest() { EXPECT_TRUE(take_lock(stranger_.get(), file_).ok()); }

  // A waiter that counts its wake-ups and does nothing about them.
  [[nodiscard]] std::unique_ptr<Watch> wait(int& woken) {
    auto watch = backend_.watch(LockKind::lock, "a", [&woken] { ++woken; });
    executor_.run();
    return watch;
  }
  [[nodiscard]] TryOutcome::Status try_lock(bool wait_for_it) {
    TryOutcome::Status status{};
    const LockRequest request{
        .name = "a", .owner = host_.new_owner_id(), .holder = "h:1:l", .lease = 1s, .wait = wait_for_it};
    backend_.try_acquire(request, [&](const TryOutcome& outcome) { status = outcome.status; });
    executor_.run();
    return status;
  }
  // What the kernel does to watchers when any writable descriptor of the file goes.
  void close_another_descriptor() {
    util::UniqueFd(::open(file_.c_str(), O_RDWR | O_CLOEXEC)).reset();
    executor_.run();
  }

  ScratchDirectory scratch_;
  PollExecutor executor_;
  BareHost host_{executor_};
  FileBackend backend_{host_, {.path = scratch_.locks()}};
  const std::string file_ = scratch_.locks() + "/a.lock";
  util::UniqueFd stranger_{::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
};

TEST_F(FileWakeUpTest, GoesToTheFirstWaiterAloneWhenTheLockFrees) {
  int first = 0;
  int second = 0;
  const auto one = wait(first);
  const auto two = wait(second);
  EXPECT_EQ(first, 0);
  drop_lock(stranger_.get());
  stranger_.reset();
  executor_.run();
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 0);
}

TEST_F(FileWakeUpTest, IsPassedOnWhenTheWokenWaiterGoesWithoutHavingTried) {
  int first = 0;
  int second = 0;
  auto one = wait(first);
  const auto two = wait(second);
  drop_lock(stranger_.get());
  stranger_.reset();
  executor_.run();
  ASSERT_EQ(first, 1);
  one.reset();
  executor_.run();
  EXPECT_EQ(second, 1);
}

TEST_F(FileWakeUpTest, IsNotMadeByAWaiterWhoGoesFromBehind) {
  int first = 0;
  int second = 0;
  const auto one = wait(first);
  auto two = wait(second);
  two.reset();
  executor_.run();
  EXPECT_EQ(first, 0);
}

TEST_F(FileWakeUpTest, ComesAtOnceFromAReleaseByItsOwnClientAlsoWithoutInotify) {
  executor_.refuse_descriptors = true;
  drop_lock(stranger_.get());
  ASSERT_EQ(try_lock(false), TryOutcome::Status::granted);
  int woken = 0;
  const auto watch = wait(woken);
  ASSERT_EQ(woken, 0);
  backend_.release({.name = "a", .owner = OwnerId(1, 1), .token = {}, .valid_until = {}},
                   [](const ReleaseOutcome& outcome) { EXPECT_EQ(outcome.status, ReleaseOutcome::Status::released); });
  executor_.run();
  EXPECT_EQ(woken, 1);
  EXPECT_EQ(host_.warnings().size(), 1U) << "for the directory and the file";
}

TEST_F(FileWakeUpTest, ComesWithin150MillisecondsWithoutInotify) {
  executor_.refuse_descriptors = true;
  int woken = 0;
  const auto watch = wait(woken);
  executor_.advance(1s);
  EXPECT_EQ(woken, 0);
  stranger_.reset();
  executor_.advance(150ms);
  EXPECT_GE(woken, 1);
}

TEST_F(FileWakeUpTest, IsSavedWhenTheClientHasTakenTheLockMeanwhile) {
  stranger_.reset();
  int woken = 0;
  const auto watch = backend_.watch(LockKind::lock, "a", [&woken] { ++woken; });
  EXPECT_EQ(try_lock(false), TryOutcome::Status::granted);
  EXPECT_EQ(woken, 0);
}

TEST_F(FileWakeUpTest, IsNothingThatTheUserIsWarnedAboutWhereThereIsInotify) {
  int woken = 0;
  const auto watch = wait(woken);
  EXPECT_EQ(try_lock(true), TryOutcome::Status::busy);
  EXPECT_TRUE(host_.warnings().empty());
}

TEST_F(FileWakeUpTest, ComesALittleLaterWhenTheKernelTellsBeforeItRemovesTheLock) {
  // As for a killed holder: the event first, the lock's removal after it and without another event.
  for (const auto delay : {1ms, 4ms, 16ms, 64ms}) {
    int woken = 0;
    const auto watch = wait(woken);
    close_another_descriptor();
    executor_.advance(delay - 1ms);
    EXPECT_EQ(woken, 0);
    drop_lock(stranger_.get());
    executor_.advance(64ms);
    EXPECT_GE(woken, 1) << delay.count();
    ASSERT_TRUE(take_lock(stranger_.get(), file_).ok());
  }
}

TEST_F(FileWakeUpTest, NeverComesFromLooksAtABusyLock) {
  int woken = 0;
  const auto watch = wait(woken);
  executor_.advance(1s);
  const auto looks = backend_.looks();
  for (int i = 0; i < 10; ++i) {
    // A second client, on an executor of its own.
    PollExecutor other_executor;
    BareHost host(other_executor);
    FileBackend other(host, {.path = scratch_.locks()});
    const LockRequest request{.name = "a", .owner = OwnerId(2, 2), .holder = "h:2:l", .lease = 1s, .wait = false};
    TryOutcome::Status status{};
    other.try_acquire(request, [&](const TryOutcome& outcome) { status = outcome.status; });
    EXPECT_EQ(status, TryOutcome::Status::busy);
    other.inspect(LockKind::lock, "a", [](const Result<LockInfo>& info) { EXPECT_TRUE(info.ok()); });
    other.list(LockKind::lock, [](const Result<std::vector<LockInfo>>& locks) { EXPECT_TRUE(locks.ok()); });
    other.forget({.name = "a", .idle = least_idle},
                 [](const Result<std::vector<std::string>>& forgotten) { EXPECT_TRUE(forgotten.ok()); });
  }
  executor_.run();
  EXPECT_EQ(backend_.looks(), looks) << "a busy try made an event";
  EXPECT_EQ(woken, 0);
}

TEST_F(FileWakeUpTest, ABusyLockIsLookedAtAFewTimesAfterAnEventAndThenLeftAlone) {
  int woken = 0;
  const auto watch = wait(woken);
  executor_.advance(1s);
  const auto looks = backend_.looks();
  close_another_descriptor();
  executor_.advance(1h);
  EXPECT_EQ(backend_.looks() - looks, 5U) << "at once, and after 1, 4, 16 and 64 ms";
  EXPECT_EQ(woken, 0);
}

TEST_F(FileWakeUpTest, AReleaseFreesTheLockBeforeItTells) {
  drop_lock(stranger_.get());
  ASSERT_EQ(try_lock(false), TryOutcome::Status::granted);
  // With a second descriptor of the same open file, closing alone would free nothing.
  int ours = -1;
  for (int fd = 3; fd < 256 && ours < 0; ++fd) {
    char target[4096] = {};
    const ssize_t got = ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), target, sizeof target - 1);
    if (got > 0 && file_ == target && fd != stranger_.get()) ours = fd;
  }
  ASSERT_GE(ours, 0);
  const util::UniqueFd duplicate(::fcntl(ours, F_DUPFD_CLOEXEC, 0));
  backend_.release({.name = "a", .owner = OwnerId(1, 1), .token = {}, .valid_until = {}},
                   [](const ReleaseOutcome& outcome) { EXPECT_EQ(outcome.status, ReleaseOutcome::Status::released); });
  auto lock = look_at_lock(stranger_.get(), file_);
  ASSERT_TRUE(lock.ok());
  EXPECT_EQ(lock.value(), LockState::free);
}

}  // namespace
}  // namespace dlock::file::test
