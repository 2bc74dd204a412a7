// Who is woken, and when: members that the test drives step by step, against a lock that it takes and frees with bare
// system calls. No timer fires unless the test says so, so a wake-up that comes has come through an event.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/socket.h>

#include "backends/file/lock_file.hpp"
#include "backends/file/lock_record.hpp"
#include "backends/file/slots.hpp"
#include "tests/unit/file/member.hpp"
#include "tests/unit/file/support.hpp"
#include "util/unique_fd.hpp"

namespace dlock::file::test {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

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

// Shows: first-come
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

// Shows: no-residue
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

// Shows: waiters-woken
TEST_F(FileWaitingTest, EventQueueOverflow_LosesNoWakeUp) {
  const auto limit = std::stoul(read_file("/proc/sys/fs/inotify/max_queued_events"));
  if (limit > 200'000) GTEST_SKIP() << "fs.inotify.max_queued_events is too large to fill: " << limit;
  ASSERT_TRUE(member_.enter(Mode::exclusive, "another"));  // so that the directory is watched
  Waiting waiter(member_);
  for (unsigned long i = 0; i <= limit; ++i) {
    const std::string file = scratch_.locks() + "/stranger-" + std::to_string(i % 2);
    write_file(file, "");
    fs::remove(file);
  }
  release_by_stranger();
  EXPECT_TRUE(waiter.in());
}

// --- Other kinds of locks ---

// Three clients of one kind of locks, and the file of the lock "a".
template <LockKind kind>
class FileKindTest : public testing::Test {
 protected:
  void set_permits(std::uint32_t permits) {
    for (Member* each : {&one_, &two_, &three_}) each->permits = permits;
  }

  ScratchDirectory scratch_;
  const std::string file_ = scratch_.locks() + subdirectory(kind) + "/a.lock";
  Member one_{scratch_.locks(), kind, 1};
  Member two_{scratch_.locks(), kind, 2};
  Member three_{scratch_.locks(), kind, 3};
};
using FileReadWriteTest = FileKindTest<LockKind::read_write>;
using FileSemaphoreTest = FileKindTest<LockKind::semaphore>;
using FileElectionTest = FileKindTest<LockKind::election>;

TEST_F(FileReadWriteTest, AnotherIsEntering_TriesAgainSoon) {
  EXPECT_TRUE(one_.read());
  const util::UniqueFd entering(::open(file_.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(begin_entry(entering.get(), file_).ok());
  EXPECT_FALSE(two_.read());
  Waiting reader(two_, Mode::shared);
  const auto tries = two_.backend.kernel_tries();
  two_.executor.advance(10s);
  EXPECT_LE(two_.backend.kernel_tries() - tries, 200U) << "too often while somebody is stopped there";
  EXPECT_FALSE(reader.in());
  drop_lock(entering.get());  // which the kernel tells nobody
  two_.executor.advance(64ms);
  EXPECT_TRUE(reader.in());
}

TEST_F(FileReadWriteTest, FileReplaced_ReaderIsLostWhenTheNextEnters) {
  EXPECT_TRUE(one_.read());
  fs::remove(file_);
  EXPECT_TRUE(one_.read()) << "before the news came through";
  EXPECT_EQ(one_.host.losses.size(), 1U);
  EXPECT_FALSE(one_.release(one_.grants[0]));
  EXPECT_TRUE(one_.release(one_.grants[1]));
}

TEST_F(FileSemaphoreTest, FileReplaced_WaiterKeepsItsNumber) {
  set_permits(1);
  EXPECT_TRUE(one_.enter());
  Waiting waiting(two_);
  fs::remove(file_);
  EXPECT_TRUE(three_.enter());
  EXPECT_FALSE(waiting.in());
  one_.executor.run();
  EXPECT_TRUE(three_.leave());  // and the waiter does not know yet
  one_.permits = 2;
  const Failure refusal = one_.ask(one_.request()).failure;
  EXPECT_EQ(refusal.code, errc::invalid_argument);
  EXPECT_THAT(refusal.detail, HasSubstr("is in use with 1 permits, but the request says 2"));
  EXPECT_TRUE(waiting.in());
}

TEST_F(FileSemaphoreTest, OtherNumber_IsSetByOneAtATime) {
  set_permits(3);
  EXPECT_TRUE(one_.enter() && one_.leave());
  const util::UniqueFd changing(::open(file_.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(begin_entry(changing.get(), file_).ok());
  two_.permits = 4;
  EXPECT_FALSE(two_.enter()) << "somebody may be changing it";
  Waiting waiting(two_);
  EXPECT_FALSE(waiting.in());
  drop_lock(changing.get());
  two_.executor.advance(64ms);
  EXPECT_TRUE(waiting.in());
}

TEST_F(FileSemaphoreTest, WaitedFor_IsNotForgotten) {
  set_permits(1);
  EXPECT_TRUE(one_.enter());
  Waiting waiting(two_);
  EXPECT_TRUE(one_.leave());
  three_.executor.advance(1h);
  EXPECT_THAT(three_.forget(), IsEmpty());
  waiting.give_up();
  EXPECT_THAT(three_.forget(), ElementsAre("a"));
  EXPECT_FALSE(fs::exists(file_));
}

TEST_F(FileElectionTest, EarlierLeadersValue_IsNotShown) {
  one_.value = "old";
  EXPECT_TRUE(one_.enter() && one_.leave());
  EXPECT_TRUE(two_.enter());
  EXPECT_EQ(three_.inspect().value, "");
  std::string text = read_file(file_);
  const std::string stale = format_value(OwnerId(1, 1), "old");
  text.replace(record_end, stale.size(), stale);
  text.resize(record_end + stale.size());
  write_file(file_, text);
  const LockInfo info = three_.inspect();
  EXPECT_FALSE(info.held) << "as while a leader writes who it is";
  EXPECT_EQ(info.holder, "");
  EXPECT_EQ(info.value, "");
}

TEST_F(FileElectionTest, WithoutInotify_ObserverIsNotifiedPeriodically) {
  two_.executor.refuse_descriptors = true;
  int told = 0;
  const auto watch = two_.watch(told);
  told = 0;
  EXPECT_TRUE(one_.enter());
  two_.executor.advance(150ms);
  EXPECT_GE(told, 1);
}

// --- Several processes: children that are killed, and children that inherit ---

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

// Shows: crash-safety
TEST(FileProcessesTest, HolderKilled_LockIsFreeBeforeAnyPollThoughItsChildLives) {
  const ScratchDirectory scratch;
  for (const LockKind kind : all_kinds) {
    for (const bool forks : {false, true, false, true, false}) {
      SCOPED_TRACE(std::string(to_string(kind)) + (forks ? ", with a child" : ""));
      std::array<int, 2> link{};  // the holder's child lives until the other end is closed
      ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link.data()), 0);
      Member waiting(scratch.locks(), kind, 1);
      const Child holder([&](const Child::Stay& stay) {
        ::close(link[0]);
        Member member(scratch.locks(), kind, 2);
        if (!member.enter()) return;
        char none = 0;
        if (!forks || ::fork() != 0) return stay();
        (void)!::read(link[1], &none, 1);
      });
      ::close(link[1]);
      Waiting waiter(waiting);
      EXPECT_FALSE(waiter.in());
      holder.kill();
      EXPECT_TRUE(waiting.advance_until(forks ? hang_guard : 200ms, [&] { return waiter.in(); }));
      char none = 0;
      const bool child_lives = ::recv(link[0], &none, 1, MSG_DONTWAIT) == -1;
      EXPECT_EQ(child_lives, forks) << "or it proves nothing";
      ::close(link[0]);
    }
  }
}

}  // namespace
}  // namespace dlock::file::test
