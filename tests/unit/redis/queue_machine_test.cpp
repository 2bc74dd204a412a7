#include "backends/redis/waiting/queue_machine.hpp"

#include <gtest/gtest.h>

#include "backends/redis/timing.hpp"

namespace dlock::redis {

namespace {

using namespace std::chrono_literals;
using Report = QueueMachine::Report;

const TimePoint now = TimePoint(1000s);
const Failure unavailable{errc::unavailable, "down"};
const Failure ambiguous{errc::ambiguous, "cut"};

QueueMachine machine(bool strangers = false) {
  return QueueMachine([] { return std::uint64_t{0}; }, strangers);
}
QueueMachine asking(bool strangers = false) {
  auto m = machine(strangers);
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
  auto m = asking(true);
  const auto step = m.answered(busy_at(0, std::nullopt), true, now);
  EXPECT_GT(*step.wake, now + 100ms);
  EXPECT_LE(*step.wake, now + head_poll);
}

TEST(QueueMachine, WhoeverIsToldOfEveryReleaseAsksRarely) {
  for (const std::uint64_t rank : {0U, 1U, 5U, 100U}) {
    auto m = asking();
    const auto step = m.answered(busy_at(rank), true, now);
    EXPECT_GT(*step.wake, now + longest_poll / 2) << rank;
    EXPECT_LE(*step.wake, now + longest_poll) << rank;
  }
}

TEST(QueueMachine, ThoseWhoAskRarelyAskInABeat) {
  std::uint64_t random = 0;
  for (int i = 0; i < 10; ++i) {
    QueueMachine m([&random] { return random += 123'456'789; }, false);
    (void)m.start();
    const auto wake = m.answered(busy_at(0), true, now + i * 7ms).wake;
    EXPECT_EQ(wake->time_since_epoch() % poll_beat, 0ns);
  }
}

// A thousand waiters that began in one instant must not ask in one instant.
TEST(QueueMachine, ThoseWhoAskRarelyDoNotAskTogether) {
  std::uint64_t random = 0;
  std::optional<TimePoint> before;
  for (int i = 0; i < 3; ++i) {
    QueueMachine m([&random] { return random; }, false);
    (void)m.start();
    const auto wake = m.answered(busy_at(0), true, now).wake;
    if (before) {
      EXPECT_GT(*wake - *before, longest_poll / 10);
    }
    before = wake;
    random += 600'000'000;
  }
}

// The first in line, who would look, may be gone.
TEST(QueueMachine, WhenTheLeaseEndsThoseFurtherBackLookLaterThanTheFirst) {
  std::optional<TimePoint> before;
  for (const std::uint64_t rank : {0U, 1U, 5U, 15U}) {
    auto m = asking();
    const auto wake = m.answered(busy_at(rank, 1s), true, now).wake;
    if (before) {
      EXPECT_GE(*wake, *before + head_poll) << rank;
    }
    EXPECT_LE(*wake, now + longest_poll) << rank;
    before = wake;
  }
}

TEST(QueueMachine, WhoeverIsToldToWatchLooksWhenTheLeaseEnds) {
  auto m = asking();
  const auto before = m.answered(busy_at(7), true, now).wake;
  const auto step = m.watch(1s, now);
  EXPECT_FALSE(step.ask) << "the message says all";
  ASSERT_TRUE(step.wake);
  EXPECT_LT(*step.wake, *before);
  EXPECT_GT(*step.wake, now + 1s);
  EXPECT_LT(*step.wake, now + 1010ms);
  // The lease was renewed, and others are still in front.
  EXPECT_TRUE(m.timer().ask);
  const auto again = m.answered(busy_at(3, 500ms), true, now + 1s);
  EXPECT_LT(*again.wake, now + 1510ms);
}

TEST(QueueMachine, WatchingNeverMakesALookLater) {
  auto m = asking();
  (void)m.answered(busy_at(0, 40ms), true, now);
  EXPECT_FALSE(m.watch(30s, now).wake);
}

TEST(QueueMachine, ToBeToldToWatchWhileAskingIsNotForgotten) {
  auto m = asking();
  const auto step = m.watch(1s, now);
  EXPECT_FALSE(step.ask || step.wake);
  const auto answered = m.answered(busy_at(7), true, now);
  ASSERT_TRUE(answered.wake);
  EXPECT_LT(*answered.wake, now + 1010ms);
}

TEST(QueueMachine, WhoeverLostItsPlaceDoesNotWatchAnyMore) {
  auto m = asking();
  (void)m.watch(1s, now);
  (void)m.answered(busy_at(7), true, now);
  (void)m.timer();
  auto answer = busy_at(7, 1s);
  answer.joined = true;
  EXPECT_GE(*m.answered(answer, true, now).wake, now + 1s + 7 * head_poll);
}

TEST(QueueMachine, ThoseFurtherBackAskLessOften) {
  std::optional<TimePoint> before;
  for (const std::uint64_t rank : {0U, 1U, 5U, 15U}) {
    auto m = asking(true);
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

TEST(QueueMachine, AnAnswerEndsTheBackingOff) {
  auto m = asking();
  const auto first = *m.failed(unavailable, now).wake;
  for (int i = 0; i < 20; ++i) {
    (void)m.timer();
    (void)m.failed(unavailable, now);
  }
  (void)m.timer();
  (void)m.answered(busy_at(3), true, now);
  (void)m.news();
  EXPECT_EQ(*m.failed(unavailable, now).wake, first);
}

TEST(QueueMachine, AnAnswerThatNeverCameMayHaveQueuedUs) {
  auto m = asking();
  EXPECT_EQ(m.failed(ambiguous, now).report, Report::unreachable);
  EXPECT_TRUE(m.maybe_known());
  EXPECT_TRUE(m.unanswered());
  EXPECT_TRUE(m.timer().ask);
  (void)m.answered(busy_at(0), true, now);
  EXPECT_TRUE(m.unanswered()) << "it may come after the question that was answered";
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
