// Read-write locks: who enters beside whom, and who is woken. No timer but those that the test lets fire: a grant that
// comes has come through the kernel's news.
#include <fcntl.h>
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

class FileReadWriteTest : public testing::Test {
 protected:
  [[nodiscard]] std::string file() const { return scratch_.locks() + "/.rw/a.lock"; }

  ScratchDirectory scratch_;
  Member one_{scratch_.locks(), LockKind::read_write, 1};
  Member two_{scratch_.locks(), LockKind::read_write, 2};
  Member three_{scratch_.locks(), LockKind::read_write, 3};
};

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
  const util::UniqueFd entering(::open(file().c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(begin_entry(entering.get(), file()).ok());
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
