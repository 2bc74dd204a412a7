// strategy=ephemeral: one node, created by whoever holds the lock.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>

#include "scenario.hpp"
#include "tests/unit/support/reports.hpp"

namespace dlock::zookeeper {

namespace {

class EphemeralTest : public BackendTest {
 protected:
  EphemeralTest() { connect_anew(); }
  std::unique_ptr<SessionLocks> make_it() { return make("strategy=ephemeral"); }
  std::unique_ptr<SessionLocks> make_connected() {
    auto made = make_it();
    (void)contend(*made, true, "warm-up");
    return made;
  }
  void connect_anew() {
    backend.reset();
    backend = make_connected();
  }
  bool watches_theirs() const { return ensemble.watches() > 1; }  // beside what it holds itself
  void put_theirs() { (void)ensemble.put(parent, "other:2:x", 77); }
  // Those of tries; the others set a watch.
  std::size_t looks_since(std::size_t start) const {
    return static_cast<std::size_t>(
        std::count_if(ensemble.requests.begin() + static_cast<std::ptrdiff_t>(start), ensemble.requests.end(),
                      [](const FakeRequest& request) { return request.kind == Kind::get && request.watch == 0; }));
  }
};

TEST_F(EphemeralTest, CreatingTheNodeIsHoldingTheLock) {
  const std::size_t before = ensemble.requests.size();
  const auto attempt = contend(*backend);
  ASSERT_TRUE(attempt->grant);
  EXPECT_EQ(ensemble.requests.size(), before + 1);
  EXPECT_EQ(ensemble.data(parent), data_of("host:1:test", attempt->grant->owner));
  EXPECT_EQ(ensemble.stat(parent).owner, ensemble.last_session());
  EXPECT_EQ(attempt->grant->token.value(), static_cast<std::uint64_t>(ensemble.stat(parent).created));
  EXPECT_EQ(release(*backend, *attempt)->status, ReleaseStatus::released);
  EXPECT_FALSE(ensemble.exists(parent));
}

TEST_F(EphemeralTest, TryingABusyLockAgainWritesNothing) {
  put_theirs();
  EXPECT_EQ(contend(*backend, false)->busy_reports, 1);
  const std::size_t before = ensemble.requests.size();
  const auto attempt = contend(*backend, false);
  EXPECT_EQ(attempt->busy_reports, 1);
  EXPECT_EQ(requests_since(before, Kind::create), 0U);
}

// Hazard 24: a server that lags behind would show what has changed since.
TEST_F(EphemeralTest, ALookAtWhatIsThereAlreadyIsBroughtUpToDateFirst) {
  put_theirs();
  (void)contend(*backend, false);
  std::size_t before = ensemble.requests.size();
  (void)contend(*backend, false);
  ASSERT_EQ(ensemble.requests.size(), before + 2);
  EXPECT_EQ(ensemble.requests[before].kind, Kind::sync);
  EXPECT_EQ(ensemble.requests[before + 1].kind, Kind::get);

  ensemble.remove(parent);
  next(Kind::create, Fate::lose_answer);
  const auto attempt = contend(*backend);
  before = ensemble.requests.size();
  engine.advance(100ms);
  ASSERT_EQ(ensemble.requests.size(), before + 2);
  EXPECT_EQ(ensemble.requests[before].kind, Kind::create);
  EXPECT_EQ(ensemble.requests[before + 1].kind, Kind::get);
  EXPECT_TRUE(attempt->grant);
}

TEST_F(EphemeralTest, WaitersAreWokenAgainAndAgain) {
  put_theirs();
  const auto first = contend(*backend);
  const auto second = contend(*backend);
  const auto third = contend(*backend);
  ensemble.remove(parent);
  for (int i = 0; i < 3; ++i) {
    engine.run();
    Attempt* holder = nullptr;
    for (Attempt* attempt : {first.get(), second.get(), third.get()}) {
      if (attempt->grant && attempt->contention) holder = attempt;
    }
    ASSERT_NE(holder, nullptr) << i;
    holder->contention.reset();
    (void)release(*backend, *holder);
  }
  EXPECT_FALSE(ensemble.exists(parent));
}

// Hazard 7.
TEST_F(EphemeralTest, AReleaseBetweenTheTryAndTheWatchIsNotMissed) {
  put_theirs();
  ensemble.fate = [&](const FakeRequest& request) {
    if (request.kind == Kind::get && request.watch != 0) {
      ensemble.fate = nullptr;
      ensemble.remove(parent);
    }
    return Fate::answer;
  };
  const auto attempt = contend(*backend);
  engine.advance(1s);
  EXPECT_TRUE(attempt->grant);
}

// Hazard 1 and 3: a node of our session, but whose?
TEST_F(EphemeralTest, ACreateWhoseAnswerWasLostIsFoundAgain) {
  next(Kind::create, Fate::lose_answer);
  const auto attempt = contend(*backend);
  EXPECT_FALSE(attempt->grant);
  engine.advance(1s);
  ASSERT_TRUE(attempt->grant);
  EXPECT_EQ(attempt->grant->token.value(), static_cast<std::uint64_t>(ensemble.stat(parent).created));
}

TEST_F(EphemeralTest, TwoOfOneSessionNeverTakeTheSameNodeForTheirs) {
  int lost = 0;
  ensemble.fate = [&](const FakeRequest& request) {
    return request.kind == Kind::create && request.path == parent && ++lost <= 2 ? Fate::lose_answer : Fate::answer;
  };
  const auto first = start(*backend);
  const auto second = start(*backend);
  engine.advance(5s);
  EXPECT_NE(first->grant.has_value(), second->grant.has_value());
}

TEST_F(EphemeralTest, AnotherLockOfOurSessionIsBusy) {
  const auto holder = contend(*backend);
  next(Kind::create, Fate::lose_answer);
  const auto attempt = contend(*backend);
  engine.advance(5s);
  EXPECT_TRUE(holder->grant);
  EXPECT_FALSE(attempt->grant);
}

// Its create was lost on the way, and somebody else was faster.
TEST_F(EphemeralTest, ANodeOfAnotherSessionIsNotTakenForOurs) {
  next(Kind::create, Fate::lose_request);
  const auto attempt = contend(*backend);
  put_theirs();
  engine.advance(1s);
  EXPECT_FALSE(attempt->grant);
  EXPECT_EQ(attempt->unreachable_reports.size(), 1U) << "of the create that was lost";
  ensemble.remove(parent);
  engine.advance(1s);
  ASSERT_TRUE(attempt->grant);
  EXPECT_EQ(ensemble.stat(parent).owner, ensemble.last_session());
}

// Whoever has seen that nothing there is its own begins as if it had never asked.
TEST_F(EphemeralTest, ADoubtThatIsOverCostsNothingMore) {
  next(Kind::create, Fate::lose_request);
  const auto attempt = contend(*backend);
  put_theirs();
  engine.advance(1s);
  ASSERT_TRUE(watches_theirs());
  const std::size_t before = ensemble.requests.size();
  ensemble.remove(parent);
  engine.run();
  EXPECT_TRUE(attempt->grant);
  EXPECT_EQ(ensemble.requests.at(before).kind, Kind::create);
}

TEST_F(EphemeralTest, WhoeverHasFoundItsNodeLeavesNoDoubtBehind) {
  (void)ensemble.put("/dlock");
  backend = make_it();
  next(Kind::create, Fate::lose_answer);
  auto attempt = contend(*backend);
  engine.advance(1s);
  ASSERT_TRUE(attempt->grant);
  attempt->contention.reset();
  EXPECT_EQ(release(*backend, *attempt)->status, ReleaseStatus::released);
  EXPECT_TRUE(backend->unused());
}

TEST_F(EphemeralTest, AParentThatMayHaveBeenMadeIsNoDoubtAboutTheLock) {
  for (const Fate fate : {Fate::lose_answer, Fate::hold_answer}) {
    if (ensemble.exists("/a")) ensemble.remove("/a");
    backend = make("strategy=ephemeral&prefix=/a/b");
    ensemble.fate = [fate](const FakeRequest& request) {
      return request.kind == Kind::create && request.path == "/a" ? fate : Fate::answer;
    };
    const auto attempt = contend(*backend, false);
    engine.advance(2s);
    EXPECT_TRUE(failed(*attempt, errc::unavailable));
  }
}

TEST_F(EphemeralTest, ParentsThatAreMadeTooLateMakeNoLock) {
  backend = make("strategy=ephemeral&prefix=/a/b");
  ensemble.fate = [](const FakeRequest& request) {
    return request.kind == Kind::create && request.path == "/a" ? Fate::hold_answer : Fate::answer;
  };
  const auto attempt = contend(*backend, false);
  engine.advance(2s);
  ASSERT_TRUE(failed(*attempt, errc::unavailable));
  ensemble.release_answers();
  engine.run();
  EXPECT_TRUE(ensemble.exists("/a/b"));
  EXPECT_FALSE(ensemble.exists("/a/b/lock"));
}

TEST_F(EphemeralTest, ATryOfALockThatComesAndGoesEnds) {
  int times = 100;
  ensemble.fate = [&](const FakeRequest& request) {
    if (times == 0 || request.path != parent) return Fate::answer;
    --times;
    if (request.kind == Kind::create) put_theirs();
    if (request.kind == Kind::get) ensemble.remove(parent);
    return Fate::answer;
  };
  const auto attempt = contend(*backend, false);
  EXPECT_TRUE(failed(*attempt, errc::unavailable, "keeps appearing and disappearing"));
  EXPECT_GT(times, 0);
}

// Hazard 9.
TEST_F(EphemeralTest, WhoeverGivesUpLeavesNothingBehind) {
  for (const bool lose : {false, true}) {
    for (int moment = 0; moment < 8; ++moment) {
      connect_anew();
      if (lose) next(Kind::create, Fate::lose_answer);
      auto attempt = start(*backend);
      for (int i = 0; i < moment; ++i) (void)engine.run_one();
      const bool granted = attempt->grant.has_value();
      attempt->contention.reset();
      if (granted) (void)release(*backend, *attempt);
      engine.advance(1s);
      EXPECT_FALSE(ensemble.exists(parent)) << "given up after " << moment;
    }
  }
}

TEST_F(EphemeralTest, GivingUpNeverRemovesAnothersNode) {
  const auto holder = contend(*backend);
  next(Kind::create, Fate::lose_answer);
  auto attempt = contend(*backend);
  attempt->contention.reset();
  engine.advance(5s);
  EXPECT_TRUE(ensemble.exists(parent));
  EXPECT_EQ(ensemble.stat(parent).created, static_cast<std::int64_t>(holder->grant->token.value()));
}

// Two who wait, one whose answer got lost: the node that is being released is nobody's to claim.
TEST_F(EphemeralTest, ANodeThatIsBeingReleasedIsNotClaimed) {
  for (const bool disconnected : {true, false}) {
    connect_anew();
    const auto session = ensemble.last_session();
    const auto elsewhere = make_connected();
    const auto holder = contend(*backend);
    ASSERT_TRUE(holder->grant);
    const auto other = contend(*elsewhere);
    next(Kind::create, disconnected ? Fate::hold_answer : Fate::lose_answer);
    const auto waiting = contend(*backend);
    bool released = false;
    const auto release_it = [&] { backend->release(*holder->grant, [&](const ReleaseOutcome&) { released = true; }); };
    if (disconnected) {
      ensemble.disconnect(session);
      engine.run();
      release_it();
      engine.advance(100ms);
      ensemble.reconnect(session);
      engine.run();
    } else {
      // While the waiter is looking whether the node is its own.
      ensemble.fate = [&](const FakeRequest& request) {
        if (request.kind == Kind::get && request.watch == 0 && request.session == session && !released) {
          released = true;
          engine.post(release_it);
        }
        return Fate::answer;
      };
      engine.advance(50ms);
      ensemble.fate = nullptr;
    }
    engine.advance(1s);
    EXPECT_TRUE(released);
    EXPECT_FALSE(waiting->grant && other->grant);
    EXPECT_TRUE(waiting->grant || other->grant);
    EXPECT_TRUE(host.losses.empty());
  }
}

// Whoever holds it by now is not touched.
TEST_F(EphemeralTest, AStaleReleaseTouchesNobodysLock) {
  const auto attempt = contend(*backend);
  ensemble.remove(parent);
  put_theirs();
  EXPECT_EQ(release(*backend, *attempt)->status, ReleaseStatus::not_owner);
  EXPECT_TRUE(ensemble.exists(parent));
}

TEST_F(EphemeralTest, TroubleThatIsOverMakesNobodySlow) {
  put_theirs();
  ensemble.fate = [left = std::make_shared<int>(9)](const FakeRequest& request) {
    return request.watch != 0 && --*left >= 0 ? Fate::refuse : Fate::answer;
  };
  const auto attempt = contend(*backend);
  engine.advance(10s);
  ASSERT_TRUE(watches_theirs());
  ensemble.fate = [this](const FakeRequest& request) {
    if (request.watch == 0) return Fate::answer;
    ensemble.fate = nullptr;
    return Fate::refuse;
  };
  ensemble.remove(parent);
  put_theirs();
  engine.run();
  ASSERT_FALSE(watches_theirs());
  engine.advance(50ms);
  EXPECT_TRUE(watches_theirs());
}

// Removing it would remove the lock of whoever is faster.
TEST_F(EphemeralTest, WhatAQueueLeftBehindIsLeftToTheServer) {
  (void)ensemble.put(parent);
  const auto tried = contend(*backend, false);
  ASSERT_TRUE(failed(*tried, errc::unavailable, parent));
  const auto waiting = contend(*backend);
  ASSERT_FALSE(waiting->unreachable_reports.empty());
  engine.advance(1min);
  EXPECT_FALSE(waiting->failure);
  EXPECT_EQ(ensemble.count(Kind::remove), 0U);
  ensemble.remove(parent);
  engine.advance(1s);
  EXPECT_TRUE(waiting->grant);
}

class EphemeralScenario : public testing::TestWithParam<Scenario> {};

TEST_P(EphemeralScenario, Holds) {
  run_scenario(GetParam());
}

constexpr Scenario rows[] = {
    {"FreeLock_Acquired_CostsOneRequest", "strategy=ephemeral",
     "mark; {wait|try} a; a granted; sent create; release a; gone place"},
    {"Waiter_WatchesTheNode_AndIsGrantedAfterIt", "strategy=ephemeral",
     "put place ephemeral other; wait a; a busy 1-2; watches 1; remove place; run; a granted"},
    {"Waiter_OvertakenBetweenTryAndWatch_WatchesAgain", "strategy=ephemeral",
     "put place ephemeral other; on watch do remove place, on create do put place ephemeral other; wait a; 1s; a "
     "waits; exists place; remove place; run; a granted"},
    {"Waiter_Disconnected_GoesOn", "strategy=ephemeral",
     "put place ephemeral other; wait a; disconnect; 1s; remove place; reconnect; 1s; a granted; wait b; expire; "
     "2s; b granted"},
    {"Create_AnswerLostBeforeTheSessionEnds_IsNotLookedFor", "strategy=ephemeral",
     "on create lose_answer; wait a; expire; mark; 1s; a granted; asked look 0"},
    {"Create_OfTheLastSession_IsNoGrant", "strategy=ephemeral", "on create hold; wait a; expire; 1s; a granted"},
    {"Grant_AnsweredAfterTheConnectionBroke_IsVerifiedFirst", "strategy=ephemeral",
     "on create do disconnect; wait a; 1s; exists place; a waits; reconnect; 1s; a granted"},
    {"Try_CreateRefusedAndLookNotAnswered_IsNotAmbiguous", "strategy=ephemeral",
     "put place ephemeral other; on get hold; try a; 2s; a failed unavailable"},
    {"Try_ConnectionBrokenBetweenItsRequests_NamesTheReason", "strategy=ephemeral",
     "put place ephemeral other; on get do remove place, disconnect; try a; a failed unavailable disconnected"},
    {"Try_CreateAnswerLost_IsAmbiguousAndTakenBack", "strategy=ephemeral",
     "on create lose_answer; try a; a failed ambiguous; give_up a; 1s; gone place"},
    {"Try_WithoutAConnection_EndsBeforeTheResponseTimeout", "strategy=ephemeral",
     "dial silence; fresh; try a; 1499ms; a silent; 1ms; a failed unavailable"},
    {"Try_DisconnectedBehindItsCreate_DoesNotLook", "strategy=ephemeral",
     "put place ephemeral other; mark; on create do disconnect; try a; disconnected; a busy 1; asked look 0"},
    {"Create_UnderWay_IsNotRepeatedByAReconnection", "strategy=ephemeral",
     "put place ephemeral other; mark; keep_unsent; disconnect; start_try a; run; reconnect; run; a busy 1; asked "
     "create 1"},
    {"Waiter_GivesUp_LeavesAnothersNode", "strategy=ephemeral",
     "on create lose_request; wait a; put place ephemeral other; give_up a; 5s; exists place"},
    {"Waiter_WithoutAConnection_IsToldWhy", "strategy=ephemeral",
     "dial silence; fresh; wait a; 3s; a unreachable 1-9; a waits; dial accept; reconnect; 2s; a granted"},
    {"Queue_InPlaceOfTheNode_IsRefused", "strategy=ephemeral", "member h; wait a; a failed protocol queue"},
    {"Data_OfAnotherProgram_IsLeftAlone", "strategy=ephemeral",
     "put place settings; wait a; a failed protocol; exists place"},
    {"Credentials_Refused_EndAnAcquire", "strategy=ephemeral",
     "dial refuse_auth; fresh; wait a; a failed access_denied"},
    {"MissingRights_EndAnAcquire", "strategy=ephemeral", "on create forbid; wait a; a failed access_denied"},
};

INSTANTIATE_TEST_SUITE_P(Rows, EphemeralScenario, testing::ValuesIn(rows), name_of);

}  // namespace

}  // namespace dlock::zookeeper
