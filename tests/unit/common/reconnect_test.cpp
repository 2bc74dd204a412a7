#include "backends/common/reconnect.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <vector>

#include "tests/support/manual_engine.hpp"

namespace dlock::common {

namespace {

using namespace std::chrono_literals;

const Failure gone{errc::unavailable, "gone"};
const Failure refused{errc::access_denied, "wrong password"};

class ReconnectTest : public testing::Test {
 protected:
  void start(Reconnect::Rules rules = {}) {
    reconnect.emplace(engine, rules, [this] { attempts.push_back(engine.now()); });
  }
  // The time from now to the next attempt; nullopt: none comes within an hour.
  std::optional<std::chrono::nanoseconds> next_attempt() {
    const std::size_t before = attempts.size();
    const TimePoint now = engine.now();
    engine.advance(1h);
    if (attempts.size() == before) return std::nullopt;
    return attempts[before] - now;
  }

  test::ManualEngine engine;
  std::vector<TimePoint> attempts;
  std::optional<Reconnect> reconnect;
};

TEST_F(ReconnectTest, ConnectsWhenItIsFirstWantedAndOnlyOnce) {
  start();
  engine.advance(10s);
  EXPECT_TRUE(attempts.empty());
  reconnect->want();
  reconnect->want();
  EXPECT_EQ(attempts.size(), 1U);
  reconnect->ready();
  reconnect->want();
  engine.advance(10s);
  EXPECT_EQ(attempts.size(), 1U);
  EXPECT_TRUE(reconnect->is_ready());
  EXPECT_FALSE(reconnect->problem().code);
}

TEST_F(ReconnectTest, AttemptsThatFailAreRepeatedLessAndLessOften) {
  start();
  reconnect->want();
  std::chrono::nanoseconds longest{};
  for (int i = 0; i < 10; ++i) {
    const TimePoint before = engine.now();
    reconnect->down(gone);
    EXPECT_EQ(reconnect->problem().detail, "gone");
    const std::size_t known = attempts.size();
    while (attempts.size() == known) engine.advance(1ms);
    longest = attempts.back() - before;
  }
  EXPECT_GE(longest, 500ms);
  EXPECT_LE(longest, 1s + 1ms);
}

TEST_F(ReconnectTest, WhoeverWantsItDoesNotWaitForALongPauseButNeitherDoesEachOfThemDial) {
  start();
  reconnect->want();
  for (int i = 0; i < 10; ++i) {
    reconnect->down(gone);
    engine.advance(1s);
  }
  reconnect->down(gone);
  const std::size_t known = attempts.size();
  for (int i = 0; i < 100; ++i) reconnect->want();
  engine.advance(50ms);
  EXPECT_EQ(attempts.size(), known + 1);
}

TEST_F(ReconnectTest, AGoodConnectionThatBreaksIsMadeAgainAtOnce) {
  for (const bool proven : {false, true}) {
    start();
    attempts.clear();
    reconnect->want();
    for (int i = 0; i < 10; ++i) {
      reconnect->down(gone);
      engine.advance(1s);
    }
    reconnect->ready();
    if (proven) {
      reconnect->proven();
    } else {
      reconnect->answered();
      EXPECT_FALSE(reconnect->is_good());
      engine.advance(2s);
    }
    EXPECT_TRUE(reconnect->is_good());
    reconnect->down(gone);
    const auto pause = next_attempt();
    ASSERT_TRUE(pause);
    EXPECT_LE(*pause, 10ms);
  }
}

TEST_F(ReconnectTest, AConnectionThatBreaksSoonOrUnansweredIsNoBetterThanNone) {
  struct Case {
    bool answered;
    std::chrono::nanoseconds stood;
  };
  for (const auto& [answered, stood] : {Case{true, 0s}, Case{false, 0s}, Case{false, 1h}}) {
    start();
    reconnect->want();
    std::optional<std::chrono::nanoseconds> pause;
    for (int i = 0; i < 10; ++i) {
      reconnect->ready();
      if (answered) reconnect->answered();
      engine.advance(stood);
      EXPECT_FALSE(reconnect->is_good());
      reconnect->down(gone);
      const TimePoint before = engine.now();
      const std::size_t known = attempts.size();
      while (attempts.size() == known) engine.advance(1ms);
      pause = attempts.back() - before;
    }
    EXPECT_GE(*pause, 500ms);
  }
}

TEST_F(ReconnectTest, AFinalRefusalStaysTheReasonUntilAConnectionIsAnswered) {
  start();
  reconnect->want();
  reconnect->down(refused);
  reconnect->want();
  engine.advance(1s);
  reconnect->ready();
  reconnect->down(gone);
  EXPECT_EQ(reconnect->problem().code, errc::access_denied) << "a connection that was closed unanswered";
  engine.advance(2s);
  reconnect->ready();
  reconnect->answered();
  EXPECT_FALSE(reconnect->problem().code);
  reconnect->down(gone);
  EXPECT_EQ(reconnect->problem().code, errc::unavailable);
}

TEST_F(ReconnectTest, AfterAFinalRefusalItWaitsUntilItIsWanted) {
  start();
  reconnect->want();
  reconnect->down(refused);
  EXPECT_FALSE(next_attempt());
  EXPECT_EQ(reconnect->problem().code, errc::access_denied);
  reconnect->want();
  EXPECT_TRUE(next_attempt());
}

TEST_F(ReconnectTest, OneThatInsistsGoesOnAfterAFinalRefusalButSeldom) {
  start({.insists = true});
  reconnect->want();
  for (int i = 0; i < 15; ++i) {
    reconnect->down(refused);
    const std::size_t known = attempts.size();
    engine.advance(10s);
    ASSERT_EQ(attempts.size(), known + 1);
  }
  reconnect->down(refused);
  const auto pause = next_attempt();
  ASSERT_TRUE(pause);
  EXPECT_GE(*pause, 5s);
}

TEST_F(ReconnectTest, ARefusalOfAConnectionThatStoodIsAnInterruption) {
  start();
  reconnect->want();
  reconnect->ready();
  reconnect->down(refused);
  EXPECT_TRUE(next_attempt());
}

TEST_F(ReconnectTest, AtRestItDoesNothingUntilItIsWanted) {
  start();
  reconnect->want();
  reconnect->down(gone);
  reconnect->rest();
  EXPECT_TRUE(reconnect->is_idle());
  EXPECT_FALSE(next_attempt());
  reconnect->want();
  EXPECT_EQ(attempts.back(), engine.now());
}

TEST_F(ReconnectTest, APauseOfTheCallersChoiceIsKept) {
  start();
  reconnect->want();
  reconnect->down_until(gone, engine.now() + 7s);
  EXPECT_EQ(next_attempt(), 7s);
  reconnect->rest();
  reconnect->pause_until(engine.now() + 3s);
  EXPECT_TRUE(reconnect->is_pausing());
  EXPECT_EQ(next_attempt(), 3s);
}

TEST_F(ReconnectTest, TheEndIsFinal) {
  start();
  reconnect->want();
  reconnect->down(gone);
  reconnect->stop();
  reconnect->want();
  reconnect->rest();
  EXPECT_TRUE(reconnect->is_over());
  EXPECT_FALSE(next_attempt());
  EXPECT_EQ(attempts.size(), 1U);
}

}  // namespace

}  // namespace dlock::common
