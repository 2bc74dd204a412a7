#include "backends/postgres/sessions/pool.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/postgres/options.hpp"
#include "tests/simulation/postgres/fake_connection.hpp"
#include "tests/support/manual_engine.hpp"

namespace dlock::postgres {

namespace {

using namespace std::chrono_literals;

struct CountingUser final : Session::User {
  void session_ready() override { ++ready; }
  void session_down(const Failure&, bool) override {
    ++down;
    if (when_down) when_down();
  }
  std::function<void()> when_down;
  int ready = 0;
  int down = 0;
};

class PostgresPool : public testing::Test {
 protected:
  test::ManualEngine engine;
  FakeServer server;
  Options options;
  Dialling dialling{options, server.connections(), 5s, 5s};
  CountingUser user;
  CountingUser other;
  Pool pool{engine, dialling, Purpose{.word = "locks"}, 2};
};

TEST_F(PostgresPool, ConnectsWhenSomebodyTakesOne) {
  EXPECT_EQ(server.dialled, 0);
  const auto member = pool.take(user);
  ASSERT_TRUE(member);
  engine.run();
  EXPECT_EQ(user.ready, 1);
  EXPECT_TRUE(member->session().ready());
  EXPECT_EQ(pool.size(), 1U);
}

TEST_F(PostgresPool, HasALimitAndSaysSo) {
  auto first = pool.take(user);
  const auto second = pool.take(user);
  EXPECT_FALSE(pool.take(user));
  EXPECT_EQ(pool.exhausted().code, errc::unavailable);
  EXPECT_NE(pool.exhausted().detail.find("max_connections=2"), std::string::npos);
  first.reset();
  EXPECT_TRUE(pool.take(user));
}

TEST_F(PostgresPool, GivesAConnectionThatWasGivenBackToTheNext) {
  auto member = pool.take(user);
  engine.run();
  pool.give_back(std::move(member));
  EXPECT_EQ(pool.idle(), 1U);
  const auto again = pool.take(other);
  EXPECT_TRUE(again->session().ready());
  EXPECT_EQ(server.dialled, 1);
  server.break_connections();
  engine.run();
  EXPECT_EQ(user.down, 0);
  EXPECT_EQ(other.down, 1);
  EXPECT_TRUE(again->session().over());
}

TEST_F(PostgresPool, ClosesWhatIsOfNoMoreUse) {
  auto not_connected = pool.take(user);
  pool.give_back(std::move(not_connected));
  EXPECT_EQ(pool.size(), 0U);
  auto busy = pool.take(user);
  engine.run();
  server.reply = [](const FakeQuery&) { return FakeReply::held(); };
  (void)busy->session().request({.commands = {{.text = "a"}}}, TimePoint::max());
  pool.give_back(std::move(busy));
  EXPECT_EQ(pool.size(), 0U);
  EXPECT_EQ(server.open(), 0U);
}

TEST_F(PostgresPool, ClosesWhatNobodyWantsForLong) {
  auto first = pool.take(user);
  auto second = pool.take(user);
  engine.run();
  pool.give_back(std::move(first));
  engine.advance(5s);
  pool.give_back(std::move(second));
  engine.advance(5s);
  EXPECT_EQ(pool.idle(), 1U);
  engine.advance(5s);
  EXPECT_EQ(pool.size(), 0U);
  EXPECT_EQ(server.open(), 0U);
}

TEST_F(PostgresPool, ForgetsAnIdleConnectionThatBreaks) {
  auto member = pool.take(user);
  engine.run();
  pool.give_back(std::move(member));
  server.break_connections();
  engine.run();
  EXPECT_EQ(pool.size(), 0U);
  EXPECT_EQ(user.down, 0);
}

TEST_F(PostgresPool, AMemberMayBeDestroyedWhenItHearsOfItsEnd) {
  auto member = pool.take(user);
  engine.run();
  user.when_down = [&] { member.reset(); };
  server.break_connections();
  engine.run();
  EXPECT_FALSE(member);
  EXPECT_EQ(pool.size(), 0U);
}

TEST_F(PostgresPool, AMemberMayBeHandedOver) {
  const auto member = pool.take(user);
  member->hand_over(other);
  engine.run();
  EXPECT_EQ(user.ready, 0);
  EXPECT_EQ(other.ready, 1);
}

}  // namespace

}  // namespace dlock::postgres
