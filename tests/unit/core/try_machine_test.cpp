#include "core/spi/try_machine.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <random>

namespace dlock::detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using Report = TryMachine::Report;

constexpr TimePoint kNow{std::chrono::hours(1)};

class TryMachineTest : public testing::Test {
 protected:
  [[nodiscard]] TryMachine machine(bool wait = true, TryPolicy policy = {}) {
    return {policy, wait, [this] { return random_(); }};
  }
  static TryOutcome busy(std::optional<nanoseconds> retry_after = std::nullopt) {
    return {.status = TryOutcome::Status::busy, .retry_after = retry_after};
  }
  static TryOutcome granted() { return {.status = TryOutcome::Status::granted}; }
  static TryOutcome failed(errc code) {
    return {.status = TryOutcome::Status::failed, .failure = {code, "as the test says"}};
  }
  [[nodiscard]] TryMachine started(TryPolicy policy = {}) {
    TryMachine m = machine(true, policy);
    (void)m.start();
    return m;
  }
  // A machine that watches and waits.
  [[nodiscard]] TryMachine waiting(TryPolicy policy = {}) {
    TryMachine m = started(policy);
    (void)m.tried(busy(), kNow);
    (void)m.watching(true, kNow);
    (void)m.tried(busy(), kNow);
    return m;
  }

  std::mt19937_64 random_{1};
};

TEST_F(TryMachineTest, AnUncontendedAcquireIsOneTryAndNoWatch) {
  TryMachine m = machine();
  const auto start = m.start();
  EXPECT_TRUE(start.attempt);
  EXPECT_FALSE(start.watch);
  const auto step = m.tried(granted(), kNow);
  EXPECT_EQ(step.report, Report::granted);
  EXPECT_TRUE(step.final);
  EXPECT_FALSE(step.attempt || step.watch || step.wake);
}

TEST_F(TryMachineTest, BusyIsReportedThenWatchedThenTriedAgain) {
  TryMachine m = started();
  const auto first = m.tried(busy(), kNow);
  EXPECT_EQ(first.report, Report::busy);
  EXPECT_FALSE(first.final);
  EXPECT_TRUE(first.watch);
  EXPECT_FALSE(first.attempt);
  const auto watched = m.watching(true, kNow);
  EXPECT_TRUE(watched.attempt) << "whoever released before the watch stood is seen by the second try only";
  const auto second = m.tried(busy(), kNow);
  EXPECT_FALSE(second.attempt || second.watch);
  ASSERT_TRUE(second.wake) << "the safety net under the watch";
}

TEST_F(TryMachineTest, WithoutAWatchItPolls) {
  TryMachine m = started();
  (void)m.tried(busy(), kNow);
  const auto unwatched = m.watching(false, kNow);
  EXPECT_FALSE(unwatched.attempt);
  ASSERT_TRUE(unwatched.wake);
  EXPECT_TRUE(m.timer().attempt);
  const auto again = m.tried(busy(), kNow);
  EXPECT_FALSE(again.watch) << "asked once, answered once";
  EXPECT_TRUE(again.wake);
}

TEST_F(TryMachineTest, AChangeWakesTheWaitingMachine) {
  TryMachine m = waiting();
  EXPECT_TRUE(m.changed().attempt);
}

TEST_F(TryMachineTest, AChangeDuringATryLeadsToAnother) {
  TryMachine m = waiting();
  ASSERT_TRUE(m.timer().attempt);
  EXPECT_FALSE(m.changed().attempt) << "one try at a time";
  const auto step = m.tried(busy(), kNow);
  EXPECT_TRUE(step.attempt) << "the answer may be older than the change";
  EXPECT_FALSE(step.wake);
  EXPECT_FALSE(m.tried(busy(), kNow).attempt) << "once for each change";
}

TEST_F(TryMachineTest, AChangeWhileTheWatchStartsIsCoveredByTheTryThatFollows) {
  TryMachine m = started();
  (void)m.tried(busy(), kNow);
  EXPECT_FALSE(m.changed().attempt);
  EXPECT_TRUE(m.watching(true, kNow).attempt);
  EXPECT_FALSE(m.tried(busy(), kNow).attempt);
}

TEST_F(TryMachineTest, AChangeCutsABackOffShort) {
  TryMachine m = started();
  (void)m.tried(failed(errc::unavailable), kNow);
  EXPECT_TRUE(m.changed().attempt);
}

TEST_F(TryMachineTest, PollsBetweenItsBounds) {
  TryMachine m = waiting({.poll_min = 100ms, .poll_max = 200ms});
  bool jitter = false;
  std::optional<TimePoint> last;
  for (int i = 0; i < 500; ++i) {
    ASSERT_TRUE(m.timer().attempt);
    const auto wake = m.tried(busy(), kNow).wake;
    ASSERT_TRUE(wake);
    EXPECT_GE(*wake, kNow + 100ms);
    EXPECT_LE(*wake, kNow + 200ms);
    jitter |= last && last != wake;
    last = wake;
  }
  EXPECT_TRUE(jitter);
}

TEST_F(TryMachineTest, BoundsMayBeNeighbours) {
  TryMachine m = waiting({.poll_min = 100ms, .poll_max = 100ms + 1ns});
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(m.timer().attempt);
    const auto wake = m.tried(busy(), kNow).wake;
    ASSERT_TRUE(wake);
    EXPECT_GE(*wake, kNow + 100ms);
    EXPECT_LE(*wake, kNow + 100ms + 1ns);
  }
}

TEST_F(TryMachineTest, ATimerThatIsNotWantedAnyMoreDoesNothing) {
  TryMachine m = waiting();
  ASSERT_TRUE(m.timer().attempt);
  EXPECT_FALSE(m.timer().attempt) << "a try is under way";
  (void)m.tried(granted(), kNow);
  EXPECT_FALSE(m.timer().attempt);
  EXPECT_FALSE(m.changed().attempt);
}

TEST_F(TryMachineTest, ComesBackWhenTheLeaseOfTheHolderEnds) {
  TryMachine m = waiting();
  ASSERT_TRUE(m.timer().attempt);
  const auto wake = m.tried(busy(30ms), kNow).wake;
  ASSERT_TRUE(wake);
  EXPECT_GE(*wake, kNow + 30ms);
  EXPECT_LE(*wake, kNow + 35ms);
}

TEST_F(TryMachineTest, AFarEndOfTheLeaseDoesNotReplaceTheSafetyNet) {
  TryMachine m = waiting();
  for (const nanoseconds far : {nanoseconds(1h), nanoseconds::max()}) {
    ASSERT_TRUE(m.timer().attempt);
    const auto wake = m.tried(busy(far), kNow).wake;
    ASSERT_TRUE(wake);
    EXPECT_GE(*wake, kNow + 500ms);
    EXPECT_LE(*wake, kNow + 1s);
  }
}

TEST_F(TryMachineTest, ALeaseThatIsOverAlreadyIsNoReasonForABusyLoop) {
  TryMachine m = waiting();
  for (const nanoseconds over : {nanoseconds(0), nanoseconds(-5s), nanoseconds::min()}) {
    ASSERT_TRUE(m.timer().attempt);
    const auto wake = m.tried(busy(over), kNow).wake;
    ASSERT_TRUE(wake);
    EXPECT_GE(*wake, kNow + 1ms);
    EXPECT_LE(*wake, kNow + 1s);
  }
}

TEST_F(TryMachineTest, BacksOffWhileTheServiceIsUnreachable) {
  TryMachine m = started({.backoff_min = 20ms, .backoff_max = 1s});
  nanoseconds expected = 20ms;
  for (int i = 0; i < 20; ++i) {
    const auto step = m.tried(failed(errc::unavailable), kNow);
    EXPECT_EQ(step.report, Report::unreachable);
    EXPECT_FALSE(step.final || step.attempt || step.watch);
    ASSERT_TRUE(step.wake);
    EXPECT_GE(*step.wake, kNow + expected / 2);
    EXPECT_LE(*step.wake, kNow + expected);
    expected = std::min<nanoseconds>(expected * 2, 1s);
    ASSERT_TRUE(m.timer().attempt);
  }
}

TEST_F(TryMachineTest, AnAnswerResetsTheBackOff) {
  TryMachine m = started({.backoff_min = 20ms, .backoff_max = 1s});
  for (int i = 0; i < 10; ++i) {
    (void)m.tried(failed(errc::unavailable), kNow);
    (void)m.timer();
  }
  (void)m.tried(busy(), kNow);
  (void)m.watching(true, kNow);
  const auto step = m.tried(failed(errc::unavailable), kNow);
  ASSERT_TRUE(step.wake);
  EXPECT_LE(*step.wake, kNow + 20ms);
}

TEST_F(TryMachineTest, ABackOffOfZeroOrForeverIsNeitherABusyLoopNorAnOverflow) {
  for (const nanoseconds bound : {nanoseconds(0), nanoseconds::max()}) {
    TryMachine m = started({.backoff_min = bound, .backoff_max = bound});
    for (int i = 0; i < 3; ++i) {
      const auto step = m.tried(failed(errc::unavailable), kNow);
      ASSERT_TRUE(step.wake);
      EXPECT_GE(*step.wake, kNow + 1ms);
      (void)m.timer();
    }
  }
}

TEST_F(TryMachineTest, ARequestThatDoesNotWaitIsOneTry) {
  for (const auto& [outcome, report] :
       {std::pair(busy(30ms), Report::busy), std::pair(granted(), Report::granted),
        std::pair(failed(errc::unavailable), Report::failed), std::pair(failed(errc::ambiguous), Report::failed)}) {
    TryMachine m = machine(false);
    ASSERT_TRUE(m.start().attempt);
    const auto step = m.tried(outcome, kNow);
    EXPECT_EQ(step.report, report);
    EXPECT_TRUE(step.final);
    EXPECT_FALSE(step.attempt || step.watch || step.wake);
  }
}

TEST_F(TryMachineTest, WhatTryingAgainCannotMendIsFinal) {
  for (const errc code :
       {errc::access_denied, errc::invalid_argument, errc::unsupported, errc::protocol, errc::closed}) {
    TryMachine m = started();
    const auto step = m.tried(failed(code), kNow);
    EXPECT_EQ(step.report, Report::failed);
    EXPECT_TRUE(step.final);
    EXPECT_FALSE(step.wake);
  }
}

TEST_F(TryMachineTest, RemembersAnUnknownOutcome) {
  TryMachine m = started();
  EXPECT_FALSE(m.outcome_unknown());
  EXPECT_EQ(m.tried(failed(errc::ambiguous), kNow).report, Report::unreachable);
  EXPECT_TRUE(m.outcome_unknown());
  (void)m.timer();
  (void)m.tried(failed(errc::unavailable), kNow);
  EXPECT_TRUE(m.outcome_unknown()) << "a try that did not happen resolves nothing";
  (void)m.timer();
  (void)m.tried(busy(), kNow);
  EXPECT_TRUE(m.outcome_unknown()) << "somebody else held it then, and that try may yet arrive";
}

TEST_F(TryMachineTest, AGrantResolvesAnUnknownOutcome) {
  TryMachine m = started();
  (void)m.tried(failed(errc::ambiguous), kNow);
  (void)m.timer();
  (void)m.tried(granted(), kNow);
  EXPECT_FALSE(m.outcome_unknown());
}

TEST_F(TryMachineTest, AFinalErrorLeavesAnUnknownOutcomeUnknown) {
  TryMachine m = started();
  (void)m.tried(failed(errc::ambiguous), kNow);
  (void)m.timer();
  EXPECT_TRUE(m.tried(failed(errc::access_denied), kNow).final);
  EXPECT_TRUE(m.outcome_unknown());
}

// Whatever happens, a machine that is not done either has a try or a watch under way or asked to be woken.
TEST_F(TryMachineTest, NeverFallsAsleepForGood) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    random_.seed(seed);
    TryMachine m = machine();
    TryMachine::Step step = m.start();
    bool trying = false;
    bool starting_watch = false;
    bool timer = false;
    for (int i = 0; i < 50 && !step.final; ++i) {
      trying |= step.attempt;
      starting_watch |= step.watch;
      if (step.attempt) timer = false;
      if (step.wake) timer = true;
      ASSERT_TRUE(trying || starting_watch || timer) << "seed " << seed;
      ASSERT_FALSE(step.attempt && step.watch) << "seed " << seed;
      if (random_() % 4 == 0) {
        step = m.changed();
        ASSERT_FALSE(trying && step.attempt) << "two tries at a time, seed " << seed;
      } else if (trying) {
        trying = false;
        const auto what = random_() % 10;
        step = m.tried(what == 0   ? granted()
                       : what < 4  ? failed(errc::unavailable)
                       : what == 4 ? failed(errc::ambiguous)
                                   : busy(),
                       kNow);
      } else if (starting_watch) {
        starting_watch = false;
        step = m.watching(random_() % 2 == 0, kNow);
      } else {
        timer = false;
        step = m.timer();
        ASSERT_TRUE(step.attempt) << "seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace dlock::detail
