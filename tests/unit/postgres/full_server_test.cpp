#include "backends/postgres/sessions/full_server.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "tests/support/manual_engine.hpp"

namespace dlock::postgres {

namespace {

using namespace std::chrono_literals;

class PostgresFullServer : public testing::Test {
 protected:
  // How long this client keeps away when it is refused now.
  std::chrono::nanoseconds refuse() {
    full.refused({errc::unavailable, "53300: sorry"});
    return full.next() - engine.now();
  }

  test::ManualEngine engine;
  FullServer full{engine};
};

TEST_F(PostgresFullServer, IsNotFullUntilItSaysSo) {
  EXPECT_FALSE(full.recently());
  EXPECT_FALSE(full.makes_room());
}

TEST_F(PostgresFullServer, IsLeftAloneForLongerAndLongerUpToABound) {
  const std::vector<std::chrono::seconds> at_most = {1s, 2s, 4s, 8s, 10s, 10s, 10s};
  for (const auto bound : at_most) {
    const auto pause = refuse();
    EXPECT_GE(pause, bound / 2);
    EXPECT_LE(pause, bound);
    engine.advance(pause);
  }
}

TEST_F(PostgresFullServer, SeveralConnectionsThatAreRefusedAtOnceCountAsOne) {
  (void)refuse();
  const TimePoint next = full.next();
  (void)refuse();
  EXPECT_EQ(full.next(), next);
}

TEST_F(PostgresFullServer, ClientsDoNotComeBackTogether) {
  test::ManualEngine other_engine(2);
  FullServer other(other_engine);
  other.refused({errc::unavailable, "53300: sorry"});
  (void)refuse();
  EXPECT_NE(full.next() - engine.now(), other.next() - other_engine.now());
}

TEST_F(PostgresFullServer, IsForgottenAfterAWhile) {
  for (int i = 0; i < 5; ++i) engine.advance(refuse());
  engine.advance(31s);
  EXPECT_FALSE(full.recently());
  EXPECT_LE(refuse(), 1s);
}

TEST_F(PostgresFullServer, WhoeverHoldsALockMakesNoRoom) {
  bool holds = false;
  full.holds_if([&] { return holds; });
  (void)refuse();
  EXPECT_TRUE(full.makes_room());
  holds = true;
  EXPECT_FALSE(full.makes_room());
  EXPECT_TRUE(full.recently());
}

TEST_F(PostgresFullServer, WhoeverHasLookedKeepsAwayAgain) {
  engine.advance(refuse());
  full.looked();
  EXPECT_GE(full.next() - engine.now(), 500ms);
  EXPECT_LE(full.next() - engine.now(), 1s);
}

TEST_F(PostgresFullServer, TellsThoseWhoHaveToKnow) {
  int told = 0;
  full.when_refused([&] { ++told; });
  full.when_refused([&] { ++told; });
  (void)refuse();
  EXPECT_EQ(told, 2);
  EXPECT_EQ(full.why().detail, "53300: sorry");
}

}  // namespace

}  // namespace dlock::postgres
