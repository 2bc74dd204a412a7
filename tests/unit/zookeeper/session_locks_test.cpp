// Held locks: how they are kept, lost, released; and the backend as a whole.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backend_fixture.hpp"
#include "tests/support/reports.hpp"

namespace dlock::zookeeper {

namespace {

class SessionLocksTest : public BackendTest {
 protected:
  std::set<std::string> lost_owners() const {
    std::set<std::string> owners;
    for (const auto& loss : host.losses) owners.insert(loss.owner.to_string());
    return owners;
  }
};

TEST_F(SessionLocksTest, SaysWhatItCan) {
  for (const std::string strategy : {"sequential", "sequential-herd", "ephemeral"}) {
    const bool queue = strategy != "ephemeral";
    const Capabilities can = make("strategy=" + strategy)->capabilities();
    EXPECT_EQ(can.strategy, strategy);
    EXPECT_EQ(can.lease_kind, LeaseKind::session);
    EXPECT_EQ(can.fencing, FencingDurability::service);
    EXPECT_EQ(can.fair && can.counts_waiters, queue);
    EXPECT_EQ(can.wakes_one, strategy == "sequential");
    EXPECT_TRUE(can.wakes_waiters && can.can_inspect && can.can_list && can.can_break && can.can_forget);
    EXPECT_FALSE(can.close_on_exec);
  }
}

TEST_F(SessionLocksTest, ALeaseTheSessionCannotKeepIsRefused) {
  backend = make("session_timeout=4s");
  EXPECT_EQ(backend->capabilities().max_lease, 10s);
  const auto default_lease = contend(*backend, true, "a", 10s);
  EXPECT_TRUE(default_lease->grant);
  const auto short_lease = contend(*backend, true, "b", 1s);
  EXPECT_TRUE(short_lease->grant);
  const auto long_lease = contend(*backend, true, "c", 5s);
  ASSERT_TRUE(failed(*long_lease, errc::invalid_argument, "session_timeout"));
}

TEST_F(SessionLocksTest, AShorterSessionThanAskedForIsWarnedOfAndCounts) {
  ensemble.granted = 4s;
  const auto attempt = contend(*backend);
  ASSERT_TRUE(attempt->grant);
  EXPECT_EQ(attempt->grant->lease, 4s);
  EXPECT_LE(attempt->grant->valid_until, lease_valid_until(engine.now(), 4s));
  ASSERT_EQ(host.warnings.size(), 1U);
  EXPECT_NE(host.warnings[0].reason.detail.find("4s"), std::string::npos);
  ensemble.expire();
  engine.advance(1s);
  EXPECT_EQ(host.warnings.size(), 1U);
}

TEST_F(SessionLocksTest, WithoutAPrefixZookeepersOwnNodeIsNoLock) {
  backend = make("prefix=");
  const auto attempt = contend(*backend, true, "zookeeper");
  ASSERT_TRUE(failed(*attempt, errc::invalid_argument));
  const auto other = contend(*backend, true, "a/b");
  EXPECT_TRUE(other->grant);
  EXPECT_TRUE(ensemble.exists("/a%2Fb"));
}

TEST_F(SessionLocksTest, WhoeverRestsHasNoConnectionThatCouldBreak) {
  const auto attempt = contend(*backend);
  (void)release(*backend, *attempt);
  backend->rest();
  host.connections.clear();
  ensemble.dialling = FakeEnsemble::Dialling::silence;
  const auto waiting = contend(*backend);
  engine.advance(6s);
  EXPECT_FALSE(waiting->unreachable_reports.empty());
  EXPECT_TRUE(host.connections.empty());
}

// --- Losing ----------------------------------------------------------------------------------------------------------

// Hazards 5 and 6: by our own clock, no later than what was promised.
TEST_F(SessionLocksTest, WithoutNewsTheLossIsToldByOurOwnClock) {
  const auto attempt = contend(*backend);
  ensemble.disconnect();
  engine.run();
  engine.advance(attempt->grant->valid_until - engine.now() - 1ms);
  TimePoint until = attempt->grant->valid_until;
  for (const auto& [owner, valid_until] : host.extensions) until = std::max(until, valid_until);
  engine.advance(until - engine.now());
  ASSERT_TRUE(lost(host, attempt->request.owner));
  EXPECT_EQ(host.losses[0].why.code, errc::lost);
}

// Hazard 4.
TEST_F(SessionLocksTest, TheEndOfTheSessionLosesAllThatIsHeldForGood) {
  const auto one = contend(*backend, true, "a");
  const auto two = contend(*backend, true, "b");
  ensemble.expire();
  engine.advance(5s);
  EXPECT_EQ(host.losses.size(), 2U);
  EXPECT_EQ(lost_owners().size(), 2U);
  host.extensions.clear();
  engine.advance(1min);
  EXPECT_TRUE(host.extensions.empty());
  EXPECT_EQ(release(*backend, *one)->status, ReleaseStatus::not_owner);
  const auto again = contend(*backend, true, "a");
  ASSERT_TRUE(again->grant);
  EXPECT_GT(again->grant->token, one->grant->token);
}

TEST_F(SessionLocksTest, ANodeThatSomebodyRemovesIsLost) {
  struct Row {
    std::string query;
    std::chrono::milliseconds after;
    bool first_look_fails = false;
    bool replaced = false;
  };
  const std::string ephemeral = "strategy=ephemeral";
  const std::vector<Row> rows = {
      {"", 10ms}, {"", 5s}, {"", 5s, true}, {ephemeral, 10ms}, {ephemeral, 5s}, {ephemeral, 10ms, false, true},
  };
  for (const auto& [query, after, first_look_fails, replaced] : rows) {
    backend = make(query);
    const auto attempt = contend(*backend, true, "x");
    ASSERT_TRUE(attempt->grant);
    host.losses.clear();
    if (first_look_fails) next(Kind::get, Fate::lose_answer);
    engine.advance(after);
    EXPECT_TRUE(host.losses.empty());
    ensemble.remove("/dlock/x");
    if (replaced) (void)ensemble.put("/dlock/x", "other", 77);
    engine.advance(1s);
    ASSERT_TRUE(lost(host, attempt->request.owner));
    EXPECT_EQ(release(*backend, *attempt)->status, ReleaseStatus::not_owner);
    EXPECT_EQ(ensemble.exists("/dlock/x"), replaced);
    if (replaced) ensemble.remove("/dlock/x");
  }
}

TEST_F(SessionLocksTest, AChangeOfOurNodesDataIsNoLoss) {
  const auto attempt = contend(*backend);
  engine.advance(1s);
  for (int i = 0; i < 3; ++i) {
    ensemble.set_data(own_nodes("/dlock/lock").empty() ? "" : own_nodes()[0], "host:1:test");
    engine.run();
    EXPECT_EQ(ensemble.watches(), 1U);
  }
  EXPECT_TRUE(host.losses.empty());
}

TEST_F(SessionLocksTest, ALockHeldForAMomentIsNotWatched) {
  (void)ensemble.put(parent);
  const auto attempt = contend(*backend);
  (void)release(*backend, *attempt);
  engine.advance(1s);
  EXPECT_EQ(ensemble.count(Kind::get), 0U);
}

// --- Closing ---------------------------------------------------------------------------------------------------------

TEST_F(SessionLocksTest, ClosingDoesNotWaitForARemovalThatTheEndOfTheSessionDoes) {
  const auto attempt = contend(*backend);
  next(Kind::remove, Fate::hold_answer);
  EXPECT_FALSE(release(*backend, *attempt));
  close();
  engine.run();
  EXPECT_TRUE(is_closed);
}

// Hazard 17: a session that is left to run out keeps its nodes, so the connection is waited for.
TEST_F(SessionLocksTest, ClosingWaitsForTheConnectionWhileSomethingIsToBeRemoved) {
  auto attempt = contend(*backend);
  (void)put_member();
  auto waiting = contend(*backend);
  ensemble.disconnect();
  engine.run();
  waiting.reset();
  close();
  engine.advance(1s);
  EXPECT_FALSE(is_closed);
  ensemble.reconnect();
  engine.advance(1s);
  EXPECT_TRUE(is_closed);
}

// Its session is a new one, so that nothing but the age of the question could be in the way.
TEST_F(SessionLocksTest, AfterAnOutageLongerThanTheSessionAWaiterGetsTheLockAtOnce) {
  for (const std::string query : {"strategy=sequential", "strategy=sequential-herd", "strategy=ephemeral"}) {
    FakeEnsemble::Dialling& dialling = ensemble.dialling;
    if (ensemble.exists("/dlock")) ensemble.remove("/dlock");
    dialling = FakeEnsemble::Dialling::refuse;
    backend = make(query);
    const auto attempt = contend(*backend);
    engine.advance(1h);
    dialling = FakeEnsemble::Dialling::accept;
    ensemble.reconnect();
    engine.run();
    engine.advance(2s);  // less than a quarter of the session timeout
    ASSERT_TRUE(attempt->grant) << query;
    EXPECT_GT(attempt->grant->valid_until, engine.now() + 5s) << query;
  }
}

}  // namespace

}  // namespace dlock::zookeeper
