#include "backends/postgres/sessions/full_server.hpp"

#include <gtest/gtest.h>

#include <chrono>

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

TEST_F(PostgresFullServer, IsLeftAloneForLongerAndLongerUpToABoundAndForgotten) {
  EXPECT_FALSE(full.recently() || full.makes_room());
  for (const auto bound : {1s, 2s, 4s, 8s, 10s, 10s, 10s, 10s, 10s}) {
    const auto pause = refuse();
    EXPECT_EQ(refuse(), pause) << "another connection of the same moment";
    EXPECT_GE(pause, bound / 2);
    EXPECT_LE(pause, bound);
    engine.advance(pause);
  }
  EXPECT_EQ(full.why().detail, "53300: sorry");
  engine.advance(31s);
  EXPECT_FALSE(full.recently());
  EXPECT_LE(refuse(), 1s);
}

TEST_F(PostgresFullServer, ClientsDoNotComeBackTogether) {
  test::ManualEngine other_engine(2);
  FullServer other(other_engine);
  other.refused({errc::unavailable, "53300: sorry"});
  EXPECT_NE(refuse(), other.next() - other_engine.now());
}

TEST_F(PostgresFullServer, AHolderMakesNoRoomAndAClientThatHasLookedKeepsAwayAgain) {
  bool holds = false;
  int told = 0;
  full.holds_if([&] { return holds; });
  for (int i = 0; i < 2; ++i) full.when_refused([&] { ++told; });
  const auto pause = refuse();
  EXPECT_EQ(told, 2);
  EXPECT_TRUE(full.makes_room());
  holds = true;
  EXPECT_TRUE(full.recently() && !full.makes_room());
  engine.advance(pause);
  full.looked();
  EXPECT_GE(full.next() - engine.now(), 500ms);
  EXPECT_LE(full.next() - engine.now(), 1s);
}

}  // namespace

}  // namespace dlock::postgres
