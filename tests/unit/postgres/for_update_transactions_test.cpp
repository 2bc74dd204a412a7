#include "backends/postgres/session_locks/for_update_transactions.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "for_update_fixture.hpp"
#include "tests/unit/support/reports.hpp"

namespace dlock::postgres {

namespace {

using Released = ReleaseOutcome::Status;
using State = ConnectionEvent::State;

TEST_F(ForUpdateTest, ATryIsToldWhichLimitIsReached) {
  const auto [a, b, c] = take_all();
  const auto d = try_lock("d");
  ASSERT_TRUE(failed(*d, errc::unavailable, "max_connections=3"));
  EXPECT_EQ(server.open(), 3U);
}

TEST_F(ForUpdateTest, WaitersGetConnectionsInTheirOrder) {
  const auto [a, b, c] = take_all();
  const auto d = wait_for("d");
  const auto e = wait_for("e");
  ASSERT_EQ(d->unreachable_reports.size(), 1U);
  EXPECT_NE(d->unreachable_reports[0].detail.find("max_connections=3"), std::string::npos);
  EXPECT_EQ(release(*b->grant).status, Released::released);
  EXPECT_TRUE(d->grant);
  EXPECT_FALSE(e->reported() && e->grant);
  EXPECT_EQ(release(*a->grant).status, Released::released);
  EXPECT_TRUE(e->grant);
  EXPECT_EQ(server.dialled, 3);
}

TEST_F(ForUpdateTest, WhoComesLaterDoesNotOvertakeThoseWhoWaitForAConnection) {
  const auto [a, b, c] = take_all();
  const auto d = wait_for("d");
  locks->release(*a->grant, [](const ReleaseOutcome&) {});
  while (server.count(locks->statements().commit) == 1 && engine.run_one()) {
    if (d->grant) break;
    const auto hasty = contend("e", false);  // at every moment of the hand-over
    EXPECT_FALSE(hasty->grant);
  }
  engine.run();
  EXPECT_TRUE(d->grant);
}

TEST_F(ForUpdateTest, AConnectionThatBreaksMakesRoom) {
  const auto [a, b, c] = take_all();
  const auto d = wait_for("d");
  server.break_connections("gone", 2);
  engine.run();
  EXPECT_TRUE(d->grant);
  EXPECT_EQ(host.losses.size(), 1U);
}

TEST_F(ForUpdateTest, AWaiterThatGaveUpMakesRoom) {
  const auto first = wait_for_taken("a");
  const auto b = try_lock("b");
  const auto c = try_lock("c");
  const auto d = wait_for("d");
  first->contention.reset();
  engine.run();
  EXPECT_TRUE(d->grant);
}

TEST_F(ForUpdateTest, WhoGivesUpWaitingForAConnectionIsPassedOver) {
  const auto [a, b, c] = take_all();
  const auto d = wait_for("d");
  const auto e = wait_for("e");
  d->contention.reset();
  EXPECT_EQ(release(*a->grant).status, Released::released);
  EXPECT_FALSE(d->grant);
  EXPECT_TRUE(e->grant);
}

TEST_F(ForUpdateTest, TheObserverIsToldWhenTheServerIsThereAndWhenItIsNot) {
  const auto a = try_lock("a");
  const auto b = try_lock("b");
  EXPECT_EQ(host.connections, std::vector{State::connected});
  server.dialling = FakeServer::Dialling::fail;
  server.break_connections();
  engine.run();
  EXPECT_EQ(host.connections, (std::vector{State::connected, State::reconnecting}));
  const auto c = wait_for("c");
  engine.advance(5s);
  EXPECT_EQ(host.connections.size(), 2U);
  server.dialling = FakeServer::Dialling::accept;
  engine.advance(2s);
  EXPECT_TRUE(c->grant);
  EXPECT_EQ(host.connections, (std::vector{State::connected, State::reconnecting, State::connected}));
}

TEST_F(ForUpdateTest, ConnectionsThatNobodyNeedsAreClosedAfterAWhile) {
  const auto a = try_lock("a");
  EXPECT_EQ(release(*a->grant).status, Released::released);
  EXPECT_EQ(server.open(), 1U);
  engine.advance(60s);
  EXPECT_EQ(server.open(), 0U);
}

}  // namespace

}  // namespace dlock::postgres
