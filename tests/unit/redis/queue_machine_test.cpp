#include "backends/redis/queue_machine.hpp"

#include <gtest/gtest.h>

#include "backends/redis/times.hpp"

namespace dlock::redis {

namespace {

using namespace std::chrono_literals;
using Report = QueueMachine::Report;

const TimePoint now = TimePoint(1000s);
const Failure unavailable{errc::unavailable, "down"};
const Failure ambiguous{errc::ambiguous, "cut"};

QueueMachine machine() {
  return QueueMachine([] { return std::uint64_t{0}; });
}
QueueMachine asking() {
  auto m = machine();
  (void)m.start();
  return m;
}
AcquireAnswer busy_at(std::uint64_t rank, std::optional<std::chrono::milliseconds> free_in = 30s) {
  return {.granted = false, .token = {}, .free_in = free_in, .rank = rank};
}
AcquireAnswer a_grant() {
  return {.granted = true, .token = FencingToken(7), .free_in = {}, .rank = {}};
}

TEST(QueueMachine, AsksOnceWhereTheLockIsFree) {
  auto m = machine();
  EXPECT_TRUE(m.start().ask);
  const auto step = m.answered(a_grant(), true, now);
  EXPECT_EQ(step.report, Report::granted);
  EXPECT_FALSE(step.ask || step.wake);
  EXPECT_FALSE(m.maybe_known());
}

TEST(QueueMachine, WaitsForNewsAndThenAsks) {
  auto m = asking();
  const auto step = m.answered(busy_at(3), true, now);
  EXPECT_EQ(step.report, Report::busy);
  EXPECT_FALSE(step.ask);
  ASSERT_TRUE(step.wake);
  EXPECT_TRUE(m.maybe_known());
  EXPECT_TRUE(m.news().ask);
}

TEST(QueueMachine, NewsThatComeWhileAskingAreNotForgotten) {
  auto m = asking();
  EXPECT_FALSE(m.news().ask);
  const auto step = m.answered(busy_at(0), true, now);
  EXPECT_EQ(step.report, Report::busy);
  EXPECT_TRUE(step.ask);
  // Once is enough.
  EXPECT_FALSE(m.answered(busy_at(0), true, now).ask);
}

TEST(QueueMachine, ARecoveredConnectionDoesNotRepeatAQuestionUnderWay) {
  auto m = asking();
  EXPECT_FALSE(m.recovered().ask);
  EXPECT_FALSE(m.answered(busy_at(0), true, now).ask);
  EXPECT_TRUE(m.recovered().ask);
}

TEST(QueueMachine, TheFirstInLineLooksWhenTheLeaseEnds) {
  auto m = asking();
  const auto step = m.answered(busy_at(0, 40ms), true, now);
  EXPECT_GT(*step.wake, now + 40ms);
  EXPECT_LT(*step.wake, now + 50ms);
}

TEST(QueueMachine, WhoeverIsToldThatDeadWaitersAreInTheWayAsksOnAtOnce) {
  auto m = asking();
  AcquireAnswer answer = busy_at(9'000, 0ms);
  answer.more = true;
  const auto step = m.answered(answer, true, now);
  EXPECT_GT(*step.wake, now);
  EXPECT_LE(*step.wake, now + 3ms);
}

TEST(QueueMachine, ALockWithoutAnEndIsPolledAndNeverTakenForExpired) {
  auto m = asking();
  const auto step = m.answered(busy_at(0, std::nullopt), true, now);
  EXPECT_GT(*step.wake, now + 100ms);
  EXPECT_LE(*step.wake, now + head_poll);
}

TEST(QueueMachine, ThoseFurtherBackAskLessOften) {
  std::optional<TimePoint> before;
  for (const std::uint64_t rank : {0U, 1U, 5U, 15U}) {
    auto m = asking();
    const auto wake = m.answered(busy_at(rank), true, now).wake;
    if (before) {
      EXPECT_GT(*wake, *before) << rank;
    }
    before = wake;
  }
  auto m = asking();
  EXPECT_LE(*m.answered(busy_at(1'000'000'000), true, now).wake, now + longest_poll);
}

TEST(QueueMachine, WhoeverHearsNothingAsksBeforeAGrantRunsOut) {
  for (const std::uint64_t rank : {0U, 1U, 5U, 100U}) {
    auto m = asking();
    EXPECT_LT(*m.answered(busy_at(rank), false, now).wake, now + grant_for) << rank;
  }
}

TEST(QueueMachine, BacksOffWhileTheServiceIsUnreachable) {
  auto m = asking();
  std::chrono::nanoseconds longest{};
  for (int i = 0; i < 20; ++i) {
    const auto step = m.failed(unavailable, now);
    EXPECT_EQ(step.report, Report::unreachable);
    EXPECT_GE(*step.wake, now + 10ms);
    longest = std::max(longest, *step.wake - now);
    EXPECT_TRUE(m.timer().ask);
  }
  EXPECT_GE(longest, 500ms);
  EXPECT_LE(longest, 1s);
  EXPECT_FALSE(m.maybe_known()) << "nothing was ever sent";
}

TEST(QueueMachine, AnAnswerThatNeverCameMayHaveQueuedUs) {
  auto m = asking();
  EXPECT_EQ(m.failed(ambiguous, now).report, Report::unreachable);
  EXPECT_TRUE(m.maybe_known());
  EXPECT_TRUE(m.unanswered());
  EXPECT_TRUE(m.timer().ask);
  (void)m.answered(busy_at(0), true, now);
  EXPECT_FALSE(m.unanswered());
  EXPECT_TRUE(m.maybe_known());
}

TEST(QueueMachine, AnAnswerThatMakesNoSenseIsFinalAndMayHaveQueuedUs) {
  auto m = asking();
  EXPECT_EQ(m.failed({errc::protocol, "?"}, now).report, Report::failed);
  EXPECT_TRUE(m.maybe_known());
  EXPECT_FALSE(m.timer().ask);
  EXPECT_FALSE(m.news().ask);
}

TEST(QueueMachine, ARefusalIsFinal) {
  for (const errc code : {errc::access_denied, errc::unsupported, errc::invalid_argument}) {
    auto m = asking();
    EXPECT_EQ(m.failed({code, "no"}, now).report, Report::failed);
    EXPECT_FALSE(m.maybe_known());
  }
}

}  // namespace

}  // namespace dlock::redis
