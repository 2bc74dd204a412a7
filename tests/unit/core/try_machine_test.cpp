#include "core/spi/try_machine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <tuple>
#include <vector>

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

TEST_F(TryMachineTest, AChangeDuringATryLeadsToAnother_AndATimerThatIsNotWantedToNone) {
  TryMachine m = waiting();
  ASSERT_TRUE(m.timer().attempt);
  EXPECT_FALSE(m.timer().attempt) << "a try is under way";
  EXPECT_FALSE(m.changed().attempt) << "one try at a time";
  const auto step = m.tried(busy(), kNow);
  EXPECT_TRUE(step.attempt) << "the answer may be older than the change";
  EXPECT_FALSE(step.wake);
  EXPECT_FALSE(m.tried(busy(), kNow).attempt) << "once for each change";
  ASSERT_TRUE(m.timer().attempt);
  (void)m.tried(granted(), kNow);
  EXPECT_FALSE(m.timer().attempt || m.changed().attempt);
}

TEST_F(TryMachineTest, ComesBackBetweenItsBounds_OrWhenTheLeaseOfTheHolderEnds) {
  const TryPolicy polls{.poll_min = 100ms, .poll_max = 200ms};
  struct Row {
    TryPolicy policy;
    std::optional<nanoseconds> retry_after;
    nanoseconds least;
    nanoseconds most;
  };
  const std::vector<Row> rows = {{polls, std::nullopt, 100ms, 200ms},
                                 {{.poll_min = 100ms, .poll_max = 100ms + 1ns}, std::nullopt, 100ms, 100ms + 1ns},
                                 {{}, 30ms, 30ms, 35ms},
                                 // a far end of the lease does not replace the safety net
                                 {{}, 1h, 500ms, 1s},
                                 {{}, nanoseconds::max(), 500ms, 1s},
                                 // a lease that is over already is no reason for a busy loop
                                 {{}, 0ns, 1ms, 1s},
                                 {{}, -5s, 1ms, 1s},
                                 {{}, nanoseconds::min(), 1ms, 1s}};
  for (std::size_t row = 0; row < rows.size(); ++row) {
    SCOPED_TRACE(row);
    TryMachine m = waiting(rows[row].policy);
    std::set<TimePoint> wakes;
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(m.timer().attempt);
      const auto wake = m.tried(busy(rows[row].retry_after), kNow).wake;
      ASSERT_TRUE(wake);
      EXPECT_GE(*wake, kNow + rows[row].least);
      EXPECT_LE(*wake, kNow + rows[row].most);
      wakes.insert(*wake);
    }
    EXPECT_TRUE(wakes.size() > 1U || rows[row].retry_after.value_or(1ns) < 0ns) << "jitter";
  }
}

TEST_F(TryMachineTest, BacksOffWhileTheServiceIsUnreachable_UntilAChangeOrAnAnswer) {
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
    ASSERT_TRUE(i % 2 == 0 ? m.timer().attempt : m.changed().attempt);
  }
  (void)m.tried(busy(), kNow);
  (void)m.watching(true, kNow);
  const auto step = m.tried(failed(errc::unavailable), kNow);
  ASSERT_TRUE(step.wake);
  EXPECT_LE(*step.wake, kNow + 20ms) << "an answer resets it";
  for (const nanoseconds bound : {nanoseconds(0), nanoseconds::max()}) {
    TryMachine extreme = started({.backoff_min = bound, .backoff_max = bound});
    for (int i = 0; i < 3; ++i) {
      EXPECT_GE(extreme.tried(failed(errc::unavailable), kNow).wake.value(), kNow + 1ms) << "no busy loop, no overflow";
      (void)extreme.timer();
    }
  }
}

TEST_F(TryMachineTest, ARequestThatDoesNotWaitIsOneTry_AndWhatTryingAgainCannotMendIsFinal) {
  using Row = std::tuple<bool, TryOutcome, Report>;
  for (const auto& [wait, outcome, report] :
       {Row(false, busy(30ms), Report::busy), Row(false, granted(), Report::granted),
        Row(false, failed(errc::unavailable), Report::failed), Row(false, failed(errc::ambiguous), Report::failed),
        Row(true, granted(), Report::granted), Row(true, failed(errc::access_denied), Report::failed),
        Row(true, failed(errc::invalid_argument), Report::failed), Row(true, failed(errc::unsupported), Report::failed),
        Row(true, failed(errc::protocol), Report::failed), Row(true, failed(errc::closed), Report::failed)}) {
    TryMachine m = machine(wait);
    ASSERT_TRUE(m.start().attempt);
    const auto step = m.tried(outcome, kNow);
    EXPECT_EQ(step.report, report);
    EXPECT_TRUE(step.final);
    EXPECT_FALSE(step.attempt || step.watch || step.wake);
  }
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
