// Several sessions for one client: opened under load, and used.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "zookeeper_backend_fixture.hpp"

namespace dlock::zookeeper {

namespace {

TEST_F(ZookeeperBackendTest, NothingConnectsBeforeItIsNeeded) {
  const auto group = make_group();
  engine.advance(1min);
  EXPECT_EQ(ensemble.dialled, 0);
}

// Hazard 27.
TEST_F(ZookeeperBackendTest, AClientThatIsNotBusyHasOneSession) {
  const auto group = make_connected();
  Attempts attempts;
  add(*group, attempts, 100);
  EXPECT_EQ(sessions_of(attempts), 1U);
  end(*group, attempts);
  hold_creates();
  add(*group, attempts, full);
  engine.advance(1s);
  EXPECT_EQ(ensemble.dialled, 1);
}

TEST_F(ZookeeperBackendTest, ABurstOpensNone) {
  for (const int calm : {0, 10}) {  // before the burst
    const auto group = make_connected();
    const int dialled = ensemble.dialled;
    for (int i = 0; i < 6; ++i) {
      Attempts attempts;
      add(*group, attempts, calm);
      hold_creates();
      add(*group, attempts, calm > 0 ? full + 5 : 5 * full);
      answer();
      end(*group, attempts);
      engine.advance(calm > 0 ? std::chrono::milliseconds(ZookeeperBackend::busy_for) : 1s);
    }
    EXPECT_EQ(ensemble.dialled, dialled) << calm;
  }
}

TEST_F(ZookeeperBackendTest, WhoComesBeforeThereIsASessionWaitsForTheFirst) {
  const auto group = make_group();
  Attempts attempts;
  for (int i = 0; i < 3 * full; ++i) attempts.push_back(start(*group, true, "n" + std::to_string(i)));
  engine.run();
  EXPECT_EQ(ensemble.dialled, 1);
  EXPECT_EQ(sessions_of(attempts), 1U);
}

TEST_F(ZookeeperBackendTest, UnderLoadAnotherSessionIsOpenedAndUsed) {
  const auto group = make_connected();
  hold_creates();
  Attempts attempts;
  add(*group, attempts, full);
  EXPECT_EQ(ensemble.dialled, 1);
  press(*group, attempts);
  EXPECT_EQ(ensemble.dialled, 2);
  EXPECT_EQ(sessions_of(attempts), 1U) << "it was not ready yet";
  add(*group, attempts, full);
  EXPECT_EQ(sessions_of(attempts), 2U);
  EXPECT_EQ(session_of(*attempts.back()), ensemble.last_session());
  EXPECT_EQ(ensemble.dialled, 2);
  answer();
  for (const auto& attempt : attempts) EXPECT_TRUE(attempt->grant);
  end(*group, attempts);
}

TEST_F(ZookeeperBackendTest, AcquiresOfANameKeepTheOrderOfTheirCalls) {
  const auto group = make_connected();
  (void)ensemble.put("/dlock/same");
  Attempts first_come;
  first_come.push_back(contend(*group, true, "same"));  // before there are others
  hold_creates();
  Attempts attempts;
  load(*group, attempts);
  for (int i = 0; i < 3; ++i) first_come.push_back(contend(*group, true, "same"));
  add(*group, attempts, 1);
  EXPECT_EQ(session_of(*attempts.back()), ensemble.last_session()) << "there are others";
  answer();
  EXPECT_EQ(owners_in("/dlock/same").size(), 1U);
  for (const auto& attempt : first_come) {
    ASSERT_TRUE(attempt->grant);
    EXPECT_EQ(release(*group, *attempt)->status, ReleaseStatus::released);
  }
  first_come.clear();
  // Nobody is there any more, so it goes where there is less to do.
  hold_creates();
  add(*group, attempts, full);
  first_come.push_back(contend(*group, true, "same"));
  EXPECT_EQ(session_of(*first_come.back()), ensemble.last_session());
  answer();
  end(*group, attempts);
}

TEST_F(ZookeeperBackendTest, ReleasesAreLoadAsWell) {
  const auto group = make_connected();
  Attempts attempts;
  add(*group, attempts, full);
  ensemble.fate = [](const FakeRequest& request) {
    return request.kind == Kind::remove && !is_heartbeat(request) ? Fate::hold_answer : Fate::answer;
  };
  int released = 0;
  for (const auto& attempt : attempts) {
    group->release(*attempt->grant, [&](const ReleaseOutcome&) { ++released; });
  }
  engine.run();
  EXPECT_EQ(released, 0);
  Attempts more;
  press(*group, more);
  EXPECT_EQ(ensemble.dialled, 2);
  answer();
  EXPECT_EQ(released, full);
  add(*group, more, 1);
  EXPECT_EQ(sessions_of(more), 1U) << "the first one is free again";
}

TEST_F(ZookeeperBackendTest, TheLeastLoadedIsUsedWhereAllAreBusy) {
  const auto group = make_connected("sessions=2");
  hold_creates();
  Attempts attempts;
  load(*group, attempts);
  add(*group, attempts, full);
  Attempts more;
  add(*group, more, 4);
  EXPECT_EQ(sessions_of(more), 2U);
}

TEST_F(ZookeeperBackendTest, ThereAreNeverMoreSessionsThanAllowed) {
  for (const int most : {1, 2, 4, 6}) {
    const int before = ensemble.dialled;
    const auto group = make_connected(most == 4 ? "" : "sessions=" + std::to_string(most));
    hold_creates();
    Attempts attempts;
    for (int i = 0; i < most + 2; ++i) load(*group, attempts);
    EXPECT_EQ(ensemble.dialled - before, most);
    EXPECT_EQ(sessions_of(attempts), static_cast<std::size_t>(most));
    answer();
    for (const auto& attempt : attempts) EXPECT_TRUE(attempt->grant);
  }
}

TEST_F(ZookeeperBackendTest, WhatALostSessionNeverAnsweredIsNoLoad) {
  const auto group = make_connected();
  hold_creates();
  Attempts attempts;
  add(*group, attempts, full);
  ensemble.fate = nullptr;
  ensemble.expire();
  engine.advance(5s);
  EXPECT_EQ(ensemble.dialled, 2);
  press(*group, attempts);
  EXPECT_EQ(ensemble.dialled, 2);
  for (const auto& attempt : attempts) EXPECT_TRUE(attempt->grant);
}

TEST_F(ZookeeperBackendTest, AMemberWithoutConnectionIsNotChosen) {
  const auto group = make_connected();
  auto attempts = busy(*group, 2);
  const std::int64_t first = session_of(*attempts.front());
  ensemble.disconnect(first);
  engine.run();
  Attempts more;
  add(*group, more, 1);
  ASSERT_TRUE(more.front()->grant);
  EXPECT_NE(session_of(*more.front()), first);
  EXPECT_EQ(host.connections.back(), ConnectionEvent::State::reconnecting);
}

// --- Exclusion and its ends ------------------------------------------------------------------------------------------

TEST_F(ZookeeperBackendTest, AReleaseReachesTheMemberThatHoldsTheLock) {
  for (const std::string query : {"", "strategy=ephemeral"}) {
    const auto group = make_alone(query);
    auto attempts = busy(*group, 3);
    EXPECT_EQ(sessions_of(attempts), 3U);
    for (const auto& attempt : attempts) {
      EXPECT_EQ(release(*group, *attempt)->status, ReleaseStatus::released);
      EXPECT_EQ(session_of(*attempt), 0);
      EXPECT_EQ(release(*group, *attempt)->status, ReleaseStatus::not_owner);
    }
  }
}

TEST_F(ZookeeperBackendTest, ASessionThatIsLostTakesOnlyItsOwnLocksAlong) {
  const auto group = make_connected();
  auto attempts = busy(*group, 3);
  const std::int64_t doomed = session_of(*attempts.back());
  std::set<std::string> expected;
  for (const auto& attempt : attempts) {
    if (session_of(*attempt) == doomed) expected.insert(attempt->request.owner.to_string());
  }
  ensemble.expire(doomed);
  engine.advance(1min);
  std::set<std::string> lost;
  for (const auto& loss : host.losses) lost.insert(loss.owner.to_string());
  EXPECT_EQ(lost, expected);
  for (const auto& attempt : attempts) {
    const bool is_lost = expected.contains(attempt->request.owner.to_string());
    EXPECT_EQ(release(*group, *attempt)->status, is_lost ? ReleaseStatus::not_owner : ReleaseStatus::released);
  }
}

// --- What is told ----------------------------------------------------------------------------------------------------

TEST_F(ZookeeperBackendTest, TheObserverHearsOfTheFirstConnectionOnly) {
  ensemble.granted = 4s;
  const auto group = make_connected();
  auto attempts = busy(*group, 2);
  EXPECT_EQ(host.connections.size(), 1U);
  EXPECT_EQ(host.warnings.size(), 1U) << "of the short session";
  ensemble.disconnect(session_of(*attempts.back()));
  engine.advance(10s);
  EXPECT_EQ(host.connections.size(), 1U);
  EXPECT_EQ(host.losses.size(), 1U);
  ensemble.disconnect(session_of(*attempts.front()));
  engine.run();
  EXPECT_EQ(host.connections.back(), ConnectionEvent::State::reconnecting);
}

}  // namespace

}  // namespace dlock::zookeeper
