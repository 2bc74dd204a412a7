// strategy=table at a server that has no connections left: holders come through, and waiters make room.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <vector>

#include "rows_fixture.hpp"
#include "tests/unit/support/reports.hpp"

namespace dlock::postgres {

namespace {

class PostgresRowsAtAFullServer : public RowsTest {
 protected:
  PostgresRowsAtAFullServer() : RowsTest(Strategy::table) {}

  [[nodiscard]] int dialled_within(std::chrono::nanoseconds time) {
    const int before = server.dialled;
    engine.advance(time);
    return server.dialled - before;
  }
  [[nodiscard]] static std::unique_ptr<Attempt> take(RowClient& client, const std::string& name,
                                                     test::ManualEngine& engine) {
    auto attempt = client.contend(name, false);
    engine.run();
    return attempt;
  }
};

TEST_F(PostgresRowsAtAFullServer, WhoeverOnlyWaitsLeavesItAloneForSeconds) {
  server.room = 0;
  const auto waiting = client->contend("x");
  (void)dialled_within(30s);
  const int dialled = dialled_within(60s);
  EXPECT_GE(dialled, 5);
  EXPECT_LE(dialled, 13);  // every 5 to 10 s
  EXPECT_FALSE(waiting->failure);
  ASSERT_FALSE(waiting->unreachable_reports.empty());
  EXPECT_NE(waiting->unreachable_reports.back().detail.find("53300"), std::string::npos);
}

TEST_F(PostgresRowsAtAFullServer, HoweverManyWaitInAClientItIsOneThatConnects) {
  server.room = 0;
  std::vector<std::unique_ptr<Attempt>> waiting;
  for (int i = 0; i < 50; ++i) waiting.push_back(client->contend("x" + std::to_string(i)));
  (void)dialled_within(30s);
  EXPECT_LE(dialled_within(60s), 13);
}

TEST_F(PostgresRowsAtAFullServer, WhoeverHoldsALockTriesAgainSeveralTimesASecond) {
  const auto held = take(*client, "x", engine);
  ASSERT_TRUE(held->grant);
  server.room = 0;
  server.break_connections();
  EXPECT_GE(dialled_within(10s), 40);
  server.room = 1;
  engine.advance(250ms);
  client->renew(*held->grant);
  engine.run();
  ASSERT_EQ(client->renewals.size(), 1U);
  EXPECT_EQ(client->renewals[0].status, RenewOutcome::Status::renewed);
}

TEST_F(PostgresRowsAtAFullServer, WhoeverHasReleasedItsLockHoldsNone) {
  const auto held = take(*client, "x", engine);
  client->release(*held->grant);
  engine.run();
  server.room = 0;
  server.break_connections();
  (void)dialled_within(20s);
  EXPECT_LE(dialled_within(60s), 13);
}

TEST_F(PostgresRowsAtAFullServer, ATryConnectsAtOnce) {
  server.room = 0;
  const auto waiting = client->contend("x");
  engine.advance(30s);
  const auto attempt = client->contend("y", false);
  EXPECT_GE(dialled_within(60ms), 1);
  ASSERT_TRUE(failed(*attempt, errc::unavailable));
}

TEST_F(PostgresRowsAtAFullServer, WhoeverWasRefusedLooksAndGoesAgain) {
  rows.give_to("x", "somebody", 24h);
  server.room = 0;
  const auto waiting = client->contend("x");
  engine.advance(10s);
  server.room = 1;
  const std::size_t before = server.queries.size();
  engine.advance(10s);
  EXPECT_GT(server.queries.size(), before);
  EXPECT_EQ(server.connected(), 0U);
  rows.free("x");
  engine.advance(10s);
  EXPECT_TRUE(waiting->grant);
  EXPECT_EQ(server.connected(), 1U);
}

TEST_F(PostgresRowsAtAFullServer, WhereThereIsRoomAgainConnectionsStayAndListen) {
  rows.give_to("x", "somebody", 24h);
  server.room = 0;
  const auto waiting = client->contend("x");
  engine.advance(10s);
  server.room.reset();
  engine.advance(2min);
  EXPECT_EQ(server.connected(), 2U);
  rows.free("x");
  engine.run();
  EXPECT_TRUE(waiting->grant);
}

TEST_F(PostgresRowsAtAFullServer, TheConnectionThatListensIsTheFirstToGo) {
  rows.give_to("x", "somebody", 24h);
  const auto waiting = client->contend("x");
  engine.run();
  ASSERT_EQ(server.connected(), 2U);
  server.room = 1;
  server.break_connections("gone", 1);
  engine.advance(100ms);
  EXPECT_EQ(server.connected(), 0U);
  engine.advance(20s);
  EXPECT_LE(server.connected(), 1U) << "it looks, and does not listen";
}

TEST_F(PostgresRowsAtAFullServer, WhoeverCannotListenGoesOnOverTheFirstConnection) {
  rows.give_to("x", "somebody", 24h);
  server.room = 1;
  const auto waiting = client->contend("x");
  engine.advance(1s);
  EXPECT_EQ(server.connected(), 1U);
  EXPECT_LE(dialled_within(30s), 1);
  rows.free("x");
  engine.advance(2s);
  EXPECT_TRUE(waiting->grant);
}

TEST_F(PostgresRowsAtAFullServer, AHolderWhoseConnectionBreaksComesBackBeforeItsLeaseEnds) {
  server.room = 3;
  const auto holder = make();
  auto held = take(*holder, "x", engine);
  ASSERT_TRUE(held->grant);
  std::vector<std::unique_ptr<RowClient>> clients;
  std::vector<std::unique_ptr<Attempt>> waiting;
  for (int i = 0; i < 30; ++i) {
    clients.push_back(make());
    waiting.push_back(clients.back()->contend("x"));
    engine.run();
  }
  engine.advance(5s);
  ASSERT_EQ(server.connected(), 3U);
  for (int times = 0; times < 20; ++times) {
    holder->renew(*held->grant);
    engine.run();
    ASSERT_EQ(holder->renewals.back().status, RenewOutcome::Status::renewed) << times;
    server.break_connections("gone", server.queries.back().connection);
    engine.advance(10s);
  }
}

}  // namespace

}  // namespace dlock::postgres
