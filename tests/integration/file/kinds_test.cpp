// Read-write locks, semaphores and elections: who enters beside whom, how many, and who is woken. No timer fires but
// those that the test lets fire: a grant that comes has come through an event of the kernel.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

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

// Three clients of one kind of locks, and the file of the lock "a".
class FileKindTest : public testing::Test {
 protected:
  explicit FileKindTest(LockKind kind)
      : file_(scratch_.locks() + subdirectory(kind) + "/a.lock"),
        one_(scratch_.locks(), kind, 1),
        two_(scratch_.locks(), kind, 2),
        three_(scratch_.locks(), kind, 3) {}

  ScratchDirectory scratch_;
  const std::string file_;
  Member one_;
  Member two_;
  Member three_;
};

// --- Read-write locks ---

class FileReadWriteTest : public FileKindTest {
 protected:
  FileReadWriteTest() : FileKindTest(LockKind::read_write) {}
};

TEST_F(FileReadWriteTest, WriterThatTries_KeepsNoReaderOut) {
  EXPECT_TRUE(one_.enter());
  Waiting reader(two_, Mode::shared);  // so that its client has the file open
  EXPECT_TRUE(one_.leave());
  EXPECT_TRUE(three_.read());
  EXPECT_FALSE(two_.enter());
  EXPECT_TRUE(reader.in());
  EXPECT_TRUE(one_.read());
}

TEST_F(FileReadWriteTest, WriterBehindAWriter_LetsReadersInOnce) {
  EXPECT_TRUE(one_.enter());
  Waiting writer(two_);
  EXPECT_TRUE(one_.leave());
  EXPECT_TRUE(three_.read()) << "the gate is there to let readers go, not to keep it a matter of writers";
  EXPECT_FALSE(writer.in());
  EXPECT_FALSE(three_.read()) << "by now it has seen that it waits for readers";
}

TEST_F(FileReadWriteTest, OneOfTwoWritersGivesUp_GateStaysShut) {
  EXPECT_TRUE(one_.read());
  Waiting first(two_);
  Waiting second(two_);
  first.give_up();
  two_.executor.run();
  EXPECT_FALSE(three_.read());
  EXPECT_TRUE(one_.leave());
  EXPECT_TRUE(second.in());
}

TEST_F(FileReadWriteTest, ReaderInFront_LeavesTheWriterItsWakeUp) {
  EXPECT_TRUE(one_.enter());
  Waiting reader(two_, Mode::shared);
  Waiting writer(two_);
  // The next readers come in before those two are told.
  EXPECT_TRUE(one_.leave());
  EXPECT_TRUE(three_.read());
  EXPECT_TRUE(reader.in());
  EXPECT_FALSE(writer.in());
  Waiting late(two_, Mode::shared);
  EXPECT_FALSE(late.in());
  EXPECT_TRUE(three_.leave());
  EXPECT_FALSE(writer.in());
  EXPECT_TRUE(reader.leave());
  EXPECT_TRUE(writer.in());
  EXPECT_FALSE(late.in());
  EXPECT_TRUE(writer.leave());
  EXPECT_TRUE(late.in());
}

TEST_F(FileReadWriteTest, ReaderWaitsForTheWriterBehindIt_WriterIsWoken) {
  // Also where the client itself is the writer that both wait for, and answers without the kernel.
  for (Member* holder : {&one_, &two_}) {
    EXPECT_TRUE(holder->enter());
    Waiting reader(two_, Mode::shared);
    const LockRequest asked = two_.request(Mode::exclusive, true);
    bool entered = false;
    const auto attempt = [&] {
      const TryOutcome outcome = two_.ask(asked);
      entered = outcome.status == TryOutcome::Status::granted;
      if (entered) two_.grants.push_back(outcome.grant);
    };
    attempt();
    auto watch = two_.backend.watch(LockKind::read_write, "a", attempt);
    EXPECT_TRUE(holder->leave());
    EXPECT_TRUE(three_.read());
    attempt();  // shuts the gate before the reader in front is told that the lock is free
    EXPECT_FALSE(reader.in());
    EXPECT_TRUE(three_.leave());
    two_.executor.run();
    ASSERT_TRUE(entered);
    watch.reset();
    EXPECT_TRUE(two_.leave());
    EXPECT_TRUE(reader.in());
    EXPECT_TRUE(reader.leave());
  }
}

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

// --- Semaphores ---

class FileSemaphoreTest : public FileKindTest {
 protected:
  FileSemaphoreTest() : FileKindTest(LockKind::semaphore) { set_permits(3); }

  void set_permits(std::uint32_t permits) {
    for (Member* each : {&one_, &two_, &three_}) each->permits = permits;
  }
  static void expect_refused(Member& member, std::uint32_t theirs, bool wait) {
    const TryOutcome outcome = member.ask(member.request(Mode::exclusive, wait));
    ASSERT_EQ(outcome.status, TryOutcome::Status::failed);
    EXPECT_EQ(outcome.failure.code, errc::invalid_argument);
    EXPECT_THAT(outcome.failure.detail, HasSubstr("is in use with " + std::to_string(theirs) +
                                                  " permits, but the request says " + std::to_string(member.permits)));
  }
};

TEST_F(FileSemaphoreTest, OtherNumber_WhileAWaiterWaits_IsRefused) {
  set_permits(1);
  EXPECT_TRUE(one_.enter());
  Waiting waiting(two_);
  Waiting behind(two_);
  EXPECT_TRUE(one_.leave());  // and nobody has told those two yet
  for (Member* each : {&one_, &two_, &three_}) {
    each->permits = 2;
    expect_refused(*each, 1, false);
    expect_refused(*each, 1, true);
  }
  two_.permits = 1;
  EXPECT_TRUE(waiting.in());
  waiting.give_up();
  Waiting late(two_);  // while its own client is the holder
  EXPECT_TRUE(waiting.leave());
  expect_refused(three_, 1, true);
  EXPECT_TRUE(behind.in());
  EXPECT_TRUE(behind.leave());
  EXPECT_TRUE(late.in());
  EXPECT_TRUE(late.leave());
  two_.executor.run();
  EXPECT_TRUE(three_.enter());
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
  expect_refused(one_, 1, false);
  EXPECT_TRUE(waiting.in());
}

TEST_F(FileSemaphoreTest, OtherNumber_IsSetByOneAtATime) {
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

TEST_F(FileSemaphoreTest, BusyTry_WakesNoWaiter) {
  set_permits(1);
  EXPECT_TRUE(one_.enter());
  Waiting waiting(two_);
  two_.executor.advance(1s);
  const auto looks = two_.backend.looks();
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(one_.enter());
    EXPECT_FALSE(three_.enter());
    EXPECT_THAT(three_.forget(), IsEmpty());
  }
  EXPECT_FALSE(waiting.in());
  EXPECT_EQ(two_.backend.looks(), looks);
}

TEST_F(FileSemaphoreTest, ManyWaiters_DoNotAllCheckAllPermits) {
  set_permits(2);
  EXPECT_TRUE(one_.enter() && one_.enter());
  Waiting waiting(two_);
  const LockRequest asked = two_.request(Mode::exclusive, true);
  EXPECT_EQ(two_.ask(asked).status, TryOutcome::Status::busy);
  two_.executor.advance(1s);
  EXPECT_EQ(two_.ask(asked).status, TryOutcome::Status::busy);
  const auto tries = two_.backend.kernel_tries();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(two_.ask(asked).status, TryOutcome::Status::busy);
  EXPECT_EQ(two_.backend.kernel_tries(), tries);
  two_.executor.advance(250ms);
  EXPECT_EQ(two_.ask(asked).status, TryOutcome::Status::busy);
  EXPECT_EQ(two_.backend.kernel_tries(), tries + 1);
  EXPECT_FALSE(two_.enter());
  EXPECT_EQ(two_.backend.kernel_tries(), tries + 2) << "a try that does not wait is not told of changes";
  EXPECT_TRUE(one_.leave());
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

TEST_F(FileSemaphoreTest, Released_ClosesItsDescriptors) {
  set_permits(2);
  EXPECT_TRUE(one_.enter() && one_.enter());
  Waiting waiting(one_);
  EXPECT_EQ(open_descriptors("/a.lock"), 3U);
  EXPECT_TRUE(one_.leave());
  EXPECT_TRUE(waiting.in());
  EXPECT_EQ(open_descriptors("/a.lock"), 2U);
  EXPECT_TRUE(waiting.leave());
  EXPECT_FALSE(two_.enter() && two_.enter());
  EXPECT_TRUE(one_.leave() && two_.leave());
  EXPECT_EQ(open_descriptors("/a.lock"), 0U);
}

// --- Elections ---

class FileElectionTest : public FileKindTest {
 protected:
  FileElectionTest() : FileKindTest(LockKind::election) {}
};

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

TEST_F(FileElectionTest, Observer_IsNotifiedOfChangesOnly) {
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

TEST_F(FileElectionTest, Watch_MayEndInsideItsCall) {
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

TEST_F(FileElectionTest, WatchMadeInsideItsCall_IsNotCalledForTheSameChange) {
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

TEST_F(FileElectionTest, WithoutInotify_ObserverIsNotifiedPeriodically) {
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
