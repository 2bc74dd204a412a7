// Several sessions for one client: those that cannot be had, that are given up again, and the end of all.
#include <gtest/gtest.h>

#include <string>

#include "zookeeper_backend_fixture.hpp"

namespace dlock::zookeeper {

namespace {

class ZookeeperBackendEndTest : public ZookeeperBackendTest {};

// --- Connections that cannot be had ----------------------------------------------------------------------------------

TEST_F(ZookeeperBackendEndTest, AFurtherSessionThatIsRefusedDoesNoHarm) {
  for (const auto refusal :
       {FakeEnsemble::Dialling::silence, FakeEnsemble::Dialling::fail, FakeEnsemble::Dialling::refuse_auth}) {
    ensemble.dialling = FakeEnsemble::Dialling::accept;
    host.connections.clear();
    const auto group = make_connected();
    ensemble.dialling = refusal;
    hold_creates();
    Attempts attempts;
    load(*group, attempts);
    load(*group, attempts);
    engine.advance(1s);
    answer();
    for (const auto& attempt : attempts) EXPECT_TRUE(attempt->grant);
    EXPECT_EQ(sessions_of(attempts), 1U);
    end(*group, attempts);
    engine.advance(2min);
    EXPECT_EQ(host.connections.size(), 1U);
    EXPECT_TRUE(host.losses.empty());
  }
}

TEST_F(ZookeeperBackendEndTest, AfterARefusalNoneIsTriedForAWhile) {
  const auto group = make_connected();
  ensemble.dialling = FakeEnsemble::Dialling::silence;
  hold_creates();
  Attempts attempts;
  load(*group, attempts);
  load(*group, attempts);
  EXPECT_EQ(ensemble.dialled, 2) << "one at a time";
  answer();
  engine.advance(10s);
  EXPECT_EQ(ensemble.closed, 1);
  hold_creates();
  load(*group, attempts);
  EXPECT_EQ(ensemble.dialled, 2);
  answer();
  ensemble.dialling = FakeEnsemble::Dialling::accept;
  engine.advance(ZookeeperBackend::rest_after);
  hold_creates();
  load(*group, attempts);
  add(*group, attempts, 1);
  EXPECT_EQ(ensemble.dialled, 3);
  EXPECT_EQ(sessions_of(attempts), 2U);
}

// It is given up after the connect timeout, by when all hosts have had their turn.
TEST_F(ZookeeperBackendEndTest, AFurtherSessionLeavesASilentHostForTheNextOne) {
  for (const std::string silent : {"h", "g"}) {
    ensemble.silent = {};
    const auto group = make_backend<ZookeeperBackend>("", ",g");
    const auto first = contend(*group, true, "first");
    ASSERT_TRUE(first->grant);
    ensemble.silent = {silent};
    hold_creates();
    Attempts attempts;
    load(*group, attempts);
    engine.advance(6s);
    ensemble.fate = nullptr;
    add(*group, attempts, 1);
    answer();
    EXPECT_EQ(sessions_of(attempts), 2U) << silent;
  }
}

TEST_F(ZookeeperBackendEndTest, WhatIsNotNeededDoesNotCompeteForAConnectionWithWhatHoldsLocks) {
  const auto group = make_connected();
  ensemble.dialling = FakeEnsemble::Dialling::silence;
  hold_creates();
  Attempts attempts;
  load(*group, attempts);
  answer();
  EXPECT_EQ(ensemble.dialled, 2);
  EXPECT_EQ(ensemble.closed, 0);
  ensemble.disconnect(session_of(*attempts.front()));
  engine.run();
  EXPECT_EQ(ensemble.closed, 1) << "the one that is not ready";
  hold_creates();
  load(*group, attempts);
  EXPECT_EQ(ensemble.dialled, 2);
  ensemble.dialling = FakeEnsemble::Dialling::accept;
  ensemble.reconnect();
  engine.advance(1s);
  EXPECT_TRUE(host.losses.empty());
}

// --- Rest ------------------------------------------------------------------------------------------------------------

TEST_F(ZookeeperBackendEndTest, AFurtherSessionThatIsNotUsedRests) {
  for (const std::string query : {"", "strategy=ephemeral"}) {
    const int closed = ensemble.closed;
    const auto group = make_alone(query);
    auto attempts = busy(*group, 3);
    end(*group, attempts);
    engine.advance(ZookeeperBackend::rest_after - 1s);
    EXPECT_EQ(ensemble.closed - closed, 0);
    engine.advance(12s);
    EXPECT_EQ(ensemble.closed - closed, 2);
    const std::size_t heartbeats = ensemble.heartbeats();
    engine.advance(1min);
    EXPECT_LE(ensemble.heartbeats() - heartbeats, 25U) << "of one session";
  }
  EXPECT_EQ(ensemble.dialled, 6);
  EXPECT_TRUE(host.losses.empty());
  EXPECT_TRUE(host.warnings.empty());
}

TEST_F(ZookeeperBackendEndTest, UnderLoadOneThatRestsIsWoken) {
  for (const std::string query : {"", "strategy=ephemeral"}) {
    const auto group = make_alone(query + (query.empty() ? "" : "&") + "sessions=2");
    const int dialled = ensemble.dialled;
    for (int i = 1; i <= 3; ++i) {
      auto attempts = busy(*group, 2);
      EXPECT_EQ(ensemble.dialled - dialled, i);
      EXPECT_EQ(sessions_of(attempts), 2U);
      end(*group, attempts);
      engine.advance(1min);
    }
  }
}

TEST_F(ZookeeperBackendEndTest, WithALockItDoesNotRest) {
  const auto group = make_connected();
  auto attempts = busy(*group, 2);
  engine.advance(2min);
  EXPECT_TRUE(host.losses.empty());
  EXPECT_EQ(sessions_of(attempts), 2U);
  end(*group, attempts);
  engine.advance(1min);
  EXPECT_EQ(ensemble.closed, 1);
}

TEST_F(ZookeeperBackendEndTest, WithAWaiterItDoesNotRest) {
  for (const std::string query : {"", "strategy=sequential-herd", "strategy=ephemeral"}) {
    const int closed = ensemble.closed;
    const auto group = make_alone(query);
    const auto holder = contend(*group, true, "held");
    holder->contention.reset();  // as the core does; whoever comes may go to another session
    hold_creates();
    Attempts attempts;
    load(*group, attempts);
    const auto waiting = contend(*group, true, "held");
    answer();
    end(*group, attempts);
    EXPECT_FALSE(waiting->grant);
    engine.advance(2min);
    EXPECT_EQ(ensemble.closed, closed);
    EXPECT_EQ(release(*group, *holder)->status, ReleaseStatus::released);
    engine.advance(1s);
    ASSERT_TRUE(waiting->grant);
    EXPECT_EQ(release(*group, *waiting)->status, ReleaseStatus::released);
  }
}

// --- The end ---------------------------------------------------------------------------------------------------------

TEST_F(ZookeeperBackendEndTest, ClosingClosesAllSessions) {
  const auto group = make_connected();
  auto attempts = busy(*group, 3);
  end(*group, attempts);
  int closed = 0;
  group->close([&] { ++closed; });
  EXPECT_EQ(closed, 0);
  engine.run();
  EXPECT_EQ(closed, 1);
  EXPECT_EQ(ensemble.closed, 3);
  engine.advance(1min);
  EXPECT_EQ(ensemble.dialled, 3);
}

TEST_F(ZookeeperBackendEndTest, ClosingWaitsForTheMemberThatHasSomethingToRemove) {
  const auto group = make_connected();
  auto attempts = busy(*group, 2);
  Attempt& last = *attempts.back();
  ensemble.disconnect(session_of(last));
  engine.run();
  group->release(*last.grant, [](const ReleaseOutcome&) {});
  bool closed = false;
  group->close([&] { closed = true; });
  engine.advance(1s);
  EXPECT_FALSE(closed);
  ensemble.reconnect();
  engine.advance(1s);
  EXPECT_TRUE(closed);
}

TEST_F(ZookeeperBackendEndTest, TheNewsThatItIsClosedMayBeItsEnd) {
  auto group = make_connected();
  auto attempts = busy(*group, 2);
  end(*group, attempts);
  group->close([&] { group.reset(); });
  engine.run();
  EXPECT_FALSE(group);
  const std::size_t asked = ensemble.requests.size();
  engine.advance(1min);
  EXPECT_EQ(ensemble.closed, ensemble.dialled);
  EXPECT_EQ(ensemble.requests.size(), asked);
  EXPECT_EQ(engine.pending_timers(), 0U);
}

TEST_F(ZookeeperBackendEndTest, AnythingMayBeUnderWayWhenTheGroupGoes) {
  for (const std::string query : {"", "strategy=sequential-herd", "strategy=ephemeral"}) {
    for (int moment = 0; moment < 20; ++moment) {
      auto group = make_alone(query);
      Attempts attempts;
      hold_creates();
      for (int i = 0; i < 4 * full; ++i) {
        if (i == 2 * full) engine.advance(ZookeeperBackend::busy_for);
        if (i == 3 * full) ensemble.fate = nullptr;
        attempts.push_back(start(*group, i % 3 != 0, "m" + std::to_string(i % 40)));
        if (i % 20 == 19) (void)engine.run_one();
      }
      group->inspect(LockKind::lock, "m1", [](const Result<LockInfo>&) {});
      group->list(LockKind::lock, [](const Result<std::vector<LockInfo>>&) {});
      group->diagnose([](const Result<std::vector<Finding>>&) {});
      auto watch = group->watch(LockKind::election, "m1", [] {});
      ensemble.release_answers();
      if (moment % 2 == 0) ensemble.disconnect();
      for (int i = 0; i < moment * 10; ++i) (void)engine.run_one();
      attempts.clear();
      watch.reset();
      if (moment % 3 == 0) group->close([] {});
      group.reset();
      const std::size_t asked = ensemble.requests.size();
      engine.advance(1min);
      ASSERT_EQ(ensemble.closed, ensemble.dialled) << query << ' ' << moment;
      ASSERT_EQ(ensemble.requests.size(), asked) << query << ' ' << moment;
      ASSERT_EQ(engine.pending_timers(), 0U) << query << ' ' << moment;
    }
  }
}

}  // namespace

}  // namespace dlock::zookeeper
