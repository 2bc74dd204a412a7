// Who is woken, and when: members that the test drives step by step, against a lock that it takes and frees with bare
// system calls. No timer fires unless the test says so, so a wake-up that comes has come through an event.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <string>
#include <system_error>
#include <utility>

#include "backends/file/lock_file.hpp"
#include "tests/unit/file/member.hpp"
#include "tests/unit/file/support.hpp"
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

TEST_F(FileWaitingTest, FirstWaiterGone_WakeUpIsPassedOn) {
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

TEST_F(FileWaitingTest, WaitersOfOneClient_AreServedInOrderWithOneWakeUpEach) {
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

TEST_F(FileWaitingTest, ReleaseByTheirClient_WakesAtOnceEvenWithoutInotify) {
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

// In a user namespace of the test's own, whose limits it may set.
TEST_F(FileWaitingTest, WithoutInotify_WaitersPollAndOneWarning) {
  const std::pair<const char*, int> limits[] = {{"/proc/sys/user/max_inotify_instances", 0},
                                                {"/proc/sys/user/max_inotify_watches", 1}};
  for (const auto& [limit, value] : limits) {
    EXPECT_WELL(in_child([&] {
      // Refused to a process with several threads, too, such as each that is built with ThreadSanitizer.
      require_permitted(::unshare(CLONE_NEWUSER) == 0, "unshare(CLONE_NEWUSER)");
      write_to(limit, std::to_string(value));
      Member client(scratch_.locks(), LockKind::lock, 2);
      require(client.enter(Mode::exclusive, "b"), "no lock");
      Waiting first(client);
      Waiting second(client);
      client.executor.advance(1s);
      require(!first.in(), "the lock is held twice");
      drop_lock(stranger_.get());
      client.executor.advance(150ms);
      require(first.in() && first.leave() && second.in(), "the waiters were not served");
      require(client.host.warnings.size() == 1, "warned " + std::to_string(client.host.warnings.size()) + " times");
      const std::string warning = client.host.warnings[0].reason.detail;
      require(warning.find("inotify is not available for " + scratch_.locks()) != std::string::npos, warning);
      const bool reported = client.finding("inotify").severity == Finding::Severity::warning;
      require(reported == (value == 0), "diagnose(): " + client.finding("inotify").message);
    }));
    ASSERT_TRUE(take_lock(stranger_.get(), file_).ok());
  }
}

TEST_F(FileWaitingTest, KernelReportsTooEarly_WakeUpComesALittleLater) {
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

TEST_F(FileWaitingTest, TriesQuestionsAndNewWaiters_WakeNoWaiter) {
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
  Member waiting(scratch_.locks(), LockKind::lock, 3);
  const Waiting waiter(waiting);
  member_.executor.run();
  EXPECT_EQ(member_.backend.looks(), looks) << "a busy try made an event";
  EXPECT_EQ(woken, 0);
}

TEST_F(FileWaitingTest, EventOfABusyLock_CausesAFewChecks) {
  int woken = 0;
  const auto watch = member_.watch(woken);
  member_.executor.advance(1s);
  const auto looks = member_.backend.looks();
  close_another_descriptor();
  member_.executor.advance(1h);
  EXPECT_EQ(member_.backend.looks() - looks, 5U) << "at once, and after 1, 4, 16 and 64 ms";
  EXPECT_EQ(woken, 0);
}

TEST_F(FileWaitingTest, WaitingClients_DoNotWakeEachOther) {
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

TEST_F(FileWaitingTest, WaiterCancelled_LeavesNothing) {
  Waiting waiter(member_);
  Waiting another(member_);
  EXPECT_EQ(open_descriptors("/a.lock"), 2U) << "waiters share one";
  waiter.give_up();
  another.give_up();
  member_.executor.run();
  EXPECT_EQ(open_descriptors("/a.lock"), 1U) << "more than the holder's";
  release_by_stranger();
  EXPECT_TRUE(member_.enter());
}

TEST_F(FileWaitingTest, EventQueueOverflow_LosesNoWakeUp) {
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

TEST_F(FileWaitingTest, Release_FreesTheLockBeforeItWakesWaiters) {
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

// --- Several processes: children that are killed, and children that inherit
// -------------------------------------------

constexpr LockKind all_kinds[] = {LockKind::lock, LockKind::read_write, LockKind::semaphore, LockKind::election};

// A forked child. Its constructor returns when the body has called its argument, which stays until the child is killed.
class Child {
 public:
  using Stay = std::function<void()>;

  explicit Child(const std::function<void(const Stay& stay)>& body) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::alarm(static_cast<unsigned>(hang_guard.count()));
      body([&] {
        (void)!::write(ends[1], "x", 1);
        ::pause();
      });
      ::_exit(0);
    }
    ::close(ends[1]);
    char done = 0;
    EXPECT_EQ(::read(ends[0], &done, 1), 1) << "it failed";
    ::close(ends[0]);
  }
  void kill() const {
    EXPECT_EQ(::kill(pid_, SIGKILL), 0);
    EXPECT_EQ(::waitpid(pid_, nullptr, 0), pid_);
  }

 private:
  pid_t pid_ = 0;
};

class FileProcessesTest : public testing::Test {
 protected:
  [[nodiscard]] Child holder(LockKind kind, Mode mode = Mode::exclusive) const {
    return Child([&](const Child::Stay& stay) {
      Member member(scratch_.locks(), kind, 2);
      if (member.enter(mode)) stay();
    });
  }

  ScratchDirectory scratch_;
};

TEST_F(FileProcessesTest, HolderKilled_LockIsFreeBeforeAnyPoll) {
  for (const LockKind kind : all_kinds) {
    for (int i = 0; i < 5; ++i) {
      Member waiting(scratch_.locks(), kind, 1);
      const Child child = holder(kind);
      Waiting waiter(waiting);
      EXPECT_FALSE(waiter.in());
      child.kill();
      EXPECT_TRUE(waiting.advance_until(200ms, [&] { return waiter.in(); })) << to_string(kind);
    }
  }
}

TEST_F(FileProcessesTest, WaitingWriterKilled_ReadersEnter) {
  Member reading(scratch_.locks(), LockKind::read_write, 1);
  EXPECT_TRUE(reading.read());
  const Child writer([&](const Child::Stay& stay) {
    Member member(scratch_.locks(), LockKind::read_write, 2);
    const Waiting waiting(member);
    stay();
  });
  EXPECT_FALSE(reading.read());
  Waiting reader(reading, Mode::shared);
  EXPECT_FALSE(reader.in());
  writer.kill();
  EXPECT_TRUE(reading.advance_until(200ms, [&] { return reader.in(); }));
}

TEST_F(FileProcessesTest, ForkedChild_DoesNotKeepItsParentsLock) {
  for (const LockKind kind : all_kinds) {
    std::array<int, 2> link{};  // the parent's child lives until the other end is closed
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link.data()), 0);
    const Child parent([&](const Child::Stay& stay) {
      ::close(link[0]);
      Member member(scratch_.locks(), kind, 2);
      if (!member.enter()) return;
      char none = 0;
      if (::fork() != 0) return stay();
      (void)!::read(link[1], &none, 1);
    });
    ::close(link[1]);
    Member other(scratch_.locks(), kind, 1);
    EXPECT_FALSE(other.enter());
    parent.kill();
    EXPECT_TRUE(other.advance_until(hang_guard, [&] { return other.enter(); })) << to_string(kind);
    char none = 0;
    EXPECT_EQ(::recv(link[0], &none, 1, MSG_DONTWAIT), -1) << "the child did not live long enough to prove anything";
    ::close(link[0]);
  }
}

}  // namespace
}  // namespace dlock::file::test
