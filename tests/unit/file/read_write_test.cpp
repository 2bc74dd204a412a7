// Read-write locks: who enters beside whom, and who is woken. No timer but those that the test lets fire: a grant that
// comes has come through the kernel's news.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "backends/file/slots.hpp"
#include "member.hpp"
#include "support.hpp"
#include "util/unique_fd.hpp"

namespace dlock::file::test {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using testing::IsEmpty;

class FileReadWriteTest : public testing::Test {
 protected:
  [[nodiscard]] std::string file() const { return scratch_.locks() + "/.rw/a.lock"; }
  // What another process does that enters just then, or is stopped while it does.
  [[nodiscard]] util::UniqueFd lock_byte(ByteRange byte, LockType type = LockType::write) const {
    util::UniqueFd fd(::open(file().c_str(), O_RDWR | O_CLOEXEC));
    auto lock = take_lock(fd.get(), file(), type, byte);
    EXPECT_TRUE(lock.ok() && lock.value() == LockState::free);
    return fd;
  }

  ScratchDirectory scratch_;
  Member one_{scratch_.locks(), LockKind::read_write, 1};
  Member two_{scratch_.locks(), LockKind::read_write, 2};
  Member three_{scratch_.locks(), LockKind::read_write, 3};
};

TEST_F(FileReadWriteTest, NobodyReadsWhileAWriterWaitsUntilItGivesUp) {
  EXPECT_TRUE(one_.read());
  Waiting writer(two_);
  for (Member* each : {&one_, &two_, &three_}) EXPECT_FALSE(each->read()) << "before a writer who waits";
  Waiting reader(three_, Mode::shared);
  EXPECT_FALSE(reader.in());
  writer.give_up();
  EXPECT_TRUE(reader.in()) << "was not told that the writer left";
  for (Member* each : {&one_, &two_, &three_}) EXPECT_TRUE(each->read());
}

TEST_F(FileReadWriteTest, AWriterWhoOnlyTriesKeepsNobodyOut) {
  EXPECT_TRUE(one_.enter());
  Waiting reader(two_, Mode::shared);  // so that its client has the file open
  EXPECT_TRUE(one_.leave());
  EXPECT_TRUE(three_.read());
  EXPECT_FALSE(two_.enter());
  EXPECT_TRUE(reader.in());
  EXPECT_TRUE(one_.read());
}

TEST_F(FileReadWriteTest, WritersAmongThemselvesKeepNoReadersOutForGood) {
  EXPECT_TRUE(one_.enter());
  Waiting writer(two_);
  EXPECT_TRUE(one_.leave());
  EXPECT_TRUE(three_.read()) << "the gate is there to let readers go, not to keep it a matter of writers";
  EXPECT_FALSE(writer.in());
  EXPECT_FALSE(three_.read()) << "by now it has seen that it waits for readers";
}

TEST_F(FileReadWriteTest, TheGateStaysShutAsLongAsOneWriterOfTheClientWaits) {
  EXPECT_TRUE(one_.read());
  Waiting first(two_);
  Waiting second(two_);
  first.give_up();
  two_.executor.run();
  EXPECT_FALSE(three_.read());
  EXPECT_TRUE(one_.leave());
  EXPECT_TRUE(second.in());
}

TEST_F(FileReadWriteTest, AReaderInFrontDoesNotTakeTheWakeUpOfTheWriterWhoShutTheGate) {
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

TEST_F(FileReadWriteTest, AWriterBehindAReaderWhoMustWaitForItIsWoken) {
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

TEST_F(FileReadWriteTest, WhoMeetsAnotherWhoIsJustEnteringTriesAgainSoon) {
  EXPECT_TRUE(one_.read());
  util::UniqueFd entering = lock_byte(entry_byte);
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

TEST_F(FileReadWriteTest, AllWhoHoldItAreShown) {
  EXPECT_FALSE(three_.inspect().held);
  EXPECT_FALSE(fs::exists(scratch_.locks() + "/.rw")) << "a question made a directory";
  EXPECT_TRUE(one_.read());
  EXPECT_TRUE(two_.read());
  EXPECT_TRUE(two_.read());
  LockInfo info = three_.inspect();
  EXPECT_TRUE(info.held);
  EXPECT_EQ(info.kind, LockKind::read_write);
  ASSERT_EQ(info.holders.size(), 3U);
  EXPECT_EQ(info.holders[0].holder, "host:1:l");
  EXPECT_EQ(info.holders[2].holder, "host:2:l");
  EXPECT_EQ(info.holders[2].token, two_.grants[1].token);
  EXPECT_EQ(info.holders[2].mode, Mode::shared);
  EXPECT_EQ(info.holder, "host:1:l");
  EXPECT_TRUE(one_.leave());
  EXPECT_EQ(three_.inspect().holder, "host:2:l");
  EXPECT_TRUE(two_.leave() && two_.leave());
  EXPECT_TRUE(one_.enter());
  info = three_.inspect();
  ASSERT_EQ(info.holders.size(), 1U);
  EXPECT_EQ(info.holders[0].mode, Mode::exclusive);
  EXPECT_TRUE(one_.leave());
  info = three_.inspect();
  EXPECT_FALSE(info.held);
  EXPECT_THAT(info.holders, IsEmpty());
  EXPECT_GT(info.token.value(), 0U);
}

TEST_F(FileReadWriteTest, AllReadersHearThatTheirFileIsGone) {
  EXPECT_TRUE(one_.read() && one_.read() && two_.read());
  fs::remove(file());
  one_.executor.run();
  two_.executor.run();
  EXPECT_EQ(one_.host.losses.size(), 2U);
  EXPECT_EQ(two_.host.losses.size(), 1U);
  EXPECT_FALSE(one_.leave());
  EXPECT_TRUE(three_.enter());
}

TEST_F(FileReadWriteTest, AReaderOnAFileThatWasReplacedIsLostWhenTheNextOneEnters) {
  EXPECT_TRUE(one_.read());
  fs::remove(file());
  EXPECT_TRUE(one_.read()) << "before the news came through";
  EXPECT_EQ(one_.host.losses.size(), 1U);
  EXPECT_FALSE(one_.release(one_.grants[0]));
  EXPECT_TRUE(one_.release(one_.grants[1]));
}

}  // namespace
}  // namespace dlock::file::test
