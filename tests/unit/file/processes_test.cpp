// Several processes: a helper that is killed, and children that inherit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "member.hpp"
#include "support.hpp"
#include "torture/rig/child_process.hpp"

namespace dlock::file::test {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class FileProcessesTest : public testing::Test {
 protected:
  // A helper of which this output has come.
  class Helper : public rig::ChildProcess {
   public:
    Helper(std::vector<std::string> arguments, const std::string& output) : ChildProcess(std::move(arguments)) {
      EXPECT_TRUE(wait_for_output(output)) << this->output();
    }
    void kill() {
      signal(SIGKILL);
      EXPECT_EQ(wait(), 128 + SIGKILL);
    }
  };
  [[nodiscard]] std::vector<std::string> command(const std::string& what, const std::string& kind = {}) const {
    return {DLOCK_FILE_TEST_HELPER, what, scratch_.url(), "a", kind};
  }

  ScratchDirectory scratch_;
};

TEST_F(FileProcessesTest, AKilledHolderFreesItsLockLongBeforeAnyPolling) {
  const std::pair<LockKind, const char*> kinds[] = {{LockKind::lock, ""}, {LockKind::semaphore, "permit"}};
  for (int i = 0; i < 20; ++i) {
    const auto& [kind, argument] = kinds[i % 2];
    Member waiting(scratch_.locks(), kind, 1);
    Helper holder(command("hold", argument), "held");
    Waiting waiter(waiting);
    EXPECT_FALSE(waiter.in());
    holder.kill();
    EXPECT_TRUE(waiting.advance_until(200ms, [&] { return waiter.in(); }));
  }
}

TEST_F(FileProcessesTest, TheDeathOfOneReaderOfTwoLeavesTheOtherAndThatOfBothLetsAWriterIn) {
  Member waiting(scratch_.locks(), LockKind::read_write, 1);
  Helper one(command("hold", "read"), "held");
  Helper two(command("hold", "read"), "held");
  EXPECT_EQ(waiting.inspect().holders.size(), 2U);
  Waiting writer(waiting);
  one.kill();
  EXPECT_FALSE(waiting.advance_until(100ms, [&] { return writer.in(); }));
  EXPECT_EQ(waiting.inspect().holders.size(), 1U);
  two.kill();
  EXPECT_TRUE(waiting.advance_until(200ms, [&] { return writer.in(); }));
}

TEST_F(FileProcessesTest, AKilledWriterWhoWaitedLetsReadersIn) {
  Member reading(scratch_.locks(), LockKind::read_write, 1);
  EXPECT_TRUE(reading.read());
  Helper writer(command("hold", "write"), "waiting");
  EXPECT_TRUE(reading.advance_until(hang_guard, [&] { return !reading.read(); })) << "the writer does not wait yet";
  Waiting reader(reading, Mode::shared);
  EXPECT_FALSE(reader.in());
  writer.kill();
  EXPECT_TRUE(reading.advance_until(200ms, [&] { return reader.in(); }));
}

TEST_F(FileProcessesTest, AForkedChildDoesNotKeepItsParentsLock) {
  const std::pair<LockKind, const char*> kinds[] = {
      {LockKind::lock, ""}, {LockKind::read_write, "read"}, {LockKind::semaphore, "permit"}};
  for (const auto& [kind, argument] : kinds) {
    Helper parent(command("fork", argument), "\n");
    const pid_t child = std::stoi(parent.output().substr(6));
    Member other(scratch_.locks(), kind, 1);
    EXPECT_FALSE(other.enter());
    parent.signal(SIGKILL);
    EXPECT_TRUE(other.advance_until(hang_guard, [&] { return other.enter(); }));
    EXPECT_EQ(::kill(child, SIGKILL), 0) << "the child did not live long enough to prove anything";
    EXPECT_EQ(parent.wait(), 128 + SIGKILL);
  }
}

TEST_F(FileProcessesTest, AProgramThatIsStartedInheritsNothing) {
  const auto client = connect(scratch_.url());
  const auto lease = client.make_lock("a").acquire();
  const auto other = connect(scratch_.url());
  other.make_lock("a").async_acquire({}, [](std::error_code, const Lease&) {});
  (void)other.inspect("a");
  const Helper program(command("descriptors"), "end");
  EXPECT_THAT(program.output(),
              AllOf(HasSubstr("/proc/self/fd/0"), Not(HasSubstr(scratch_.path())), Not(HasSubstr("inotify")),
                    Not(HasSubstr("eventpoll")), Not(HasSubstr("timerfd"))));
}

}  // namespace
}  // namespace dlock::file::test
