// Held locks: how they are kept, lost, released; and the backend as a whole.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backend_fixture.hpp"
#include "tests/unit/support/reports.hpp"

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
  const Capabilities queue = make()->capabilities();
  EXPECT_EQ(queue.backend, "zookeeper");
  EXPECT_EQ(queue.strategy, "sequential");
  EXPECT_EQ(queue.scope, Scope::network);
  EXPECT_EQ(queue.lease_kind, LeaseKind::session);
  EXPECT_EQ(queue.fencing, FencingDurability::service);
  EXPECT_TRUE(queue.fair && queue.wakes_waiters && queue.wakes_one && queue.counts_waiters);
  EXPECT_TRUE(queue.can_inspect && queue.can_list && queue.can_break);
  EXPECT_FALSE(queue.close_on_exec);
  const Capabilities herd = make("strategy=sequential-herd")->capabilities();
  EXPECT_TRUE(herd.fair && herd.counts_waiters && !herd.wakes_one);
  const Capabilities single = make("strategy=ephemeral")->capabilities();
  EXPECT_TRUE(single.wakes_waiters && !single.fair && !single.counts_waiters && !single.wakes_one);
}

TEST_F(SessionLocksTest, NothingConnectsBeforeItIsNeeded) {
  engine.advance(1min);
  EXPECT_EQ(ensemble.dialled, 0);
  close();
  engine.run();
  EXPECT_TRUE(is_closed);
}

// Hazard 27.
TEST_F(SessionLocksTest, AllLocksShareOneSession) {
  for (const std::string name : {"a", "b", "c"}) {
    const auto attempt = contend(*backend, true, name);
    ASSERT_TRUE(attempt->grant);
  }
  EXPECT_EQ(ensemble.dialled, 1);
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

// --- Keeping ---------------------------------------------------------------------------------------------------------

TEST_F(SessionLocksTest, TheHeartbeatExtendsAllThatIsHeld) {
  const auto one = contend(*backend, true, "a");
  const auto two = contend(*backend, true, "b");
  host.extensions.clear();
  engine.advance(1min);
  EXPECT_TRUE(host.losses.empty());
  std::set<std::string> owners;
  for (const auto& [owner, until] : host.extensions) owners.insert(owner.to_string());
  EXPECT_EQ(owners.size(), 2U);
  EXPECT_GT(host.extensions.back().second, engine.now());
  EXPECT_LT(host.extensions.size(), 60U);
}

TEST_F(SessionLocksTest, WhatWasReleasedIsNotExtended) {
  const auto attempt = contend(*backend);
  (void)release(*backend, *attempt);
  host.extensions.clear();
  engine.advance(30s);
  EXPECT_TRUE(host.extensions.empty());
}

// As the core does with a lease of fixed length that has run out.
TEST_F(SessionLocksTest, LocksMayBeReleasedWhileTheHostIsToldThatTheSessionLives) {
  std::vector<std::unique_ptr<Attempt>> attempts;
  for (int i = 0; i < 8; ++i) attempts.push_back(contend(*backend, true, std::to_string(i)));
  int released = 0;
  host.on_extended = [&](const OwnerId&) {
    host.on_extended = nullptr;
    for (const auto& attempt : attempts) {
      backend->release(*attempt->grant, [&](const ReleaseOutcome& outcome) {
        if (outcome.status == ReleaseStatus::released) ++released;
      });
    }
  };
  host.extensions.clear();
  engine.advance(1min);
  EXPECT_EQ(released, 8);
  EXPECT_EQ(host.extensions.size(), 1U);
  EXPECT_TRUE(host.losses.empty());
}

// A disconnection is no loss.
TEST_F(SessionLocksTest, AShortDisconnectionCostsNothing) {
  const auto attempt = contend(*backend);
  const auto nodes = own_nodes();
  ensemble.disconnect();
  engine.advance(5s);
  EXPECT_TRUE(host.losses.empty());
  EXPECT_EQ(host.connections.back(), ConnectionEvent::State::reconnecting);
  ensemble.reconnect();
  engine.advance(20s);
  EXPECT_TRUE(host.losses.empty());
  EXPECT_EQ(host.connections.back(), ConnectionEvent::State::connected);
  EXPECT_EQ(own_nodes(), nodes);
}

TEST_F(SessionLocksTest, ALeaseIsNotRenewedByItself) {
  const auto attempt = contend(*backend);
  std::optional<RenewOutcome> outcome;
  backend->renew(*attempt->grant, [&](const RenewOutcome& o) { outcome = o; });
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->status, RenewOutcome::Status::failed);
  EXPECT_EQ(outcome->failure.code, errc::unsupported);
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
  for (const auto after : {std::chrono::milliseconds(10), std::chrono::milliseconds(5000)}) {
    for (const std::string query : {"", "strategy=ephemeral"}) {
      backend = make(query);
      const auto attempt = contend(*backend, true, "x");
      ASSERT_TRUE(attempt->grant);
      host.losses.clear();
      engine.advance(after);
      EXPECT_TRUE(host.losses.empty());
      ensemble.remove("/dlock/x");
      engine.advance(1s);
      ASSERT_TRUE(lost(host, attempt->request.owner));
      EXPECT_EQ(release(*backend, *attempt)->status, ReleaseStatus::not_owner);
    }
  }
}

TEST_F(SessionLocksTest, ALookThatIsPutOffPutsOffNoOther) {
  const auto first = contend(*backend, true, "a");
  next(Kind::get, Fate::lose_answer);
  engine.advance(250ms);  // it is looked at again half a second later
  const auto second = contend(*backend, true, "b");
  engine.advance(250ms);
  ensemble.remove(own_nodes("/dlock/b").at(0));
  engine.run();
  EXPECT_TRUE(lost(host, second->request.owner));
}

// The server was out of reach, and does not know yet that the session is over.
TEST_F(SessionLocksTest, WhatALostSessionHeldIsRemovedByTheNext) {
  const auto attempt = contend(*backend);
  const std::string node = own_nodes().at(0);
  ensemble.disconnect();
  engine.run();
  ensemble.dialling = FakeEnsemble::Dialling::silence;
  engine.advance(10s);
  ASSERT_TRUE(lost(host, attempt->request.owner));
  EXPECT_TRUE(ensemble.exists(node));
  ensemble.dialling = FakeEnsemble::Dialling::accept;
  engine.advance(10s);
  EXPECT_FALSE(ensemble.exists(node));
}

TEST_F(SessionLocksTest, AnothersNodeInOurPlaceIsALoss) {
  backend = make("strategy=ephemeral");
  const auto attempt = contend(*backend);
  ensemble.remove(parent);
  (void)ensemble.put(parent, "other", 77);
  engine.advance(1s);
  EXPECT_EQ(host.losses.size(), 1U);
  EXPECT_TRUE(ensemble.exists(parent));
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

TEST_F(SessionLocksTest, ALookThatFailedIsRepeated) {
  const auto attempt = contend(*backend);
  next(Kind::get, Fate::lose_answer);
  engine.advance(2s);
  EXPECT_TRUE(host.losses.empty());
  ensemble.remove(own_nodes().at(0));
  engine.run();
  EXPECT_EQ(host.losses.size(), 1U);
}

// --- Releasing -------------------------------------------------------------------------------------------------------

TEST_F(SessionLocksTest, AReleaseRemovesTheNodeAndSaysWhoseItWas) {
  const auto attempt = contend(*backend);
  EXPECT_EQ(release(*backend, *attempt)->status, ReleaseStatus::released);
  EXPECT_TRUE(own_nodes().empty());
  EXPECT_EQ(release(*backend, *attempt)->status, ReleaseStatus::not_owner);
}

TEST_F(SessionLocksTest, AReleaseOfANodeThatIsGoneSaysSo) {
  const auto attempt = contend(*backend);
  ensemble.remove(own_nodes().at(0));
  const auto next_holder = put_member();
  EXPECT_EQ(release(*backend, *attempt)->status, ReleaseStatus::not_owner);
  EXPECT_TRUE(ensemble.exists(next_holder));
}

// The removal may have been carried out before the session ended.
TEST_F(SessionLocksTest, AReleaseWhoseAnswerWasLostWithTheSessionIsAmbiguous) {
  for (const std::string query : {"", "strategy=ephemeral"}) {
    backend = make(query);
    const auto attempt = contend(*backend, true, query.empty() ? "a" : "b");
    next(Kind::remove, Fate::hold_answer);
    std::optional<ReleaseOutcome> outcome;
    backend->release(*attempt->grant, [&](const ReleaseOutcome& o) { outcome = o; });
    engine.run();
    ensemble.expire();
    engine.advance(1s);
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->status, ReleaseStatus::failed);
    EXPECT_EQ(outcome->failure.code, errc::ambiguous);
  }
}

TEST_F(SessionLocksTest, AReleaseWhoseAnswerWasLostIsRepeatedAndCounts) {
  const auto attempt = contend(*backend);
  next(Kind::remove, Fate::lose_answer);
  std::optional<ReleaseStatus> status;
  backend->release(*attempt->grant, [&](const ReleaseOutcome& o) { status = o.status; });
  engine.advance(100ms);
  EXPECT_EQ(status, ReleaseStatus::released);
}

// Hazard 10.
TEST_F(SessionLocksTest, AReleaseThatIsNotConfirmedGoesOnInTheBackground) {
  const auto attempt = contend(*backend);
  ensemble.disconnect();
  engine.run();
  std::optional<ReleaseOutcome> outcome;
  backend->release(*attempt->grant, [&](const ReleaseOutcome& o) { outcome = o; });
  engine.advance(2s);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->status, ReleaseStatus::failed);
  EXPECT_EQ(outcome->failure.code, errc::unavailable);
  ensemble.reconnect();
  engine.run();
  EXPECT_TRUE(own_nodes().empty());
}

// --- Closing ---------------------------------------------------------------------------------------------------------

TEST_F(SessionLocksTest, ClosingEndsTheSession) {
  const auto attempt = contend(*backend);
  (void)release(*backend, *attempt);
  close();
  engine.run();
  EXPECT_TRUE(is_closed);
  EXPECT_EQ(ensemble.closed, 1);
}

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

TEST_F(SessionLocksTest, AnythingMayBeUnderWayWhenTheBackendGoes) {
  for (const std::string query : {"", "strategy=sequential-herd", "strategy=ephemeral"}) {
    for (int moment = 0; moment < 10; ++moment) {
      backend = make(query);
      const auto held = contend(*backend, true, "held");
      held->contention.reset();
      auto attempt = start(*backend, moment % 2 == 0, "other");
      auto waiting = start(*backend, true, "held");
      backend->inspect(LockKind::lock, "held", [](const Result<LockInfo>&) {});
      backend->list(LockKind::lock, [](const Result<std::vector<LockInfo>>&) {});
      backend->release(*held->grant, [](const ReleaseOutcome&) {});
      for (int i = 0; i < moment; ++i) (void)engine.run_one();
      attempt.reset();
      waiting.reset();
      backend.reset();
      engine.advance(1min);
    }
  }
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
