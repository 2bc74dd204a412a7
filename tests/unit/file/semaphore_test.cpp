// Semaphores: so many permits and no more, one number for all, and whose turn it is.
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
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class FileSemaphoreTest : public testing::Test {
 protected:
  FileSemaphoreTest() { set_permits(3); }

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
  [[nodiscard]] std::string file() const { return scratch_.locks() + "/.sem/a.lock"; }

  ScratchDirectory scratch_;
  Member one_{scratch_.locks(), LockKind::semaphore, 1};
  Member two_{scratch_.locks(), LockKind::semaphore, 2};
  Member three_{scratch_.locks(), LockKind::semaphore, 3};
};

TEST_F(FileSemaphoreTest, AnotherNumberIsRefusedWhileSomebodyWaits) {
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

TEST_F(FileSemaphoreTest, AWaiterUsesItsNumberInTheFileThatReplacesItsOwn) {
  set_permits(1);
  EXPECT_TRUE(one_.enter());
  Waiting waiting(two_);
  fs::remove(file());
  EXPECT_TRUE(three_.enter());
  EXPECT_FALSE(waiting.in());
  one_.executor.run();
  EXPECT_TRUE(three_.leave());  // and the waiter does not know yet
  one_.permits = 2;
  expect_refused(one_, 1, false);
  EXPECT_TRUE(waiting.in());
}

TEST_F(FileSemaphoreTest, ANumberIsChangedByOneAtATime) {
  EXPECT_TRUE(one_.enter() && one_.leave());
  const util::UniqueFd changing(::open(file().c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(begin_entry(changing.get(), file()).ok());
  two_.permits = 4;
  EXPECT_FALSE(two_.enter()) << "somebody may be changing it";
  Waiting waiting(two_);
  EXPECT_FALSE(waiting.in());
  drop_lock(changing.get());
  two_.executor.advance(64ms);
  EXPECT_TRUE(waiting.in());
}

TEST_F(FileSemaphoreTest, ThoseWhoWaitDoNotAllLookAtAllPermits) {
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

TEST_F(FileSemaphoreTest, IsNotForgottenWhileSomebodyWaits) {
  set_permits(1);
  EXPECT_TRUE(one_.enter());
  Waiting waiting(two_);
  EXPECT_TRUE(one_.leave());
  three_.executor.advance(1h);
  EXPECT_THAT(three_.forget(), IsEmpty());
  waiting.give_up();
  EXPECT_THAT(three_.forget(), ElementsAre("a"));
  EXPECT_FALSE(fs::exists(file()));
}

TEST_F(FileSemaphoreTest, LeavesNoDescriptorsBehind) {
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

}  // namespace
}  // namespace dlock::file::test
