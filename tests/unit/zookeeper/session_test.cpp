#include "backends/zookeeper/session.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "fake_handle.hpp"
#include "tests/support/manual_engine.hpp"

namespace dlock::zookeeper {

namespace {

using namespace std::chrono_literals;
using Dialling = FakeEnsemble::Dialling;
using Kind = FakeRequest::Kind;
using Words = std::vector<std::string>;

struct RecordingUser final : Session::User {
  void session_ready(bool fresh) override { heard.emplace_back(fresh ? "new" : "again"); }
  void session_alive(TimePoint valid_until) override { alive.push_back(valid_until); }
  void session_suspended(const Failure& why) override {
    heard.emplace_back("suspended");
    reasons.push_back(why);
  }
  void session_lost(const Failure& why) override {
    heard.emplace_back("lost");
    reasons.push_back(why);
  }
  std::vector<std::string> heard;
  std::vector<TimePoint> alive;
  std::vector<Failure> reasons;
};

class SessionTest : public testing::Test {
 protected:
  SessionTest() {
    options.hosts = {{.name = "h"}};
    options.session_timeout = 9s;
    options.connect_timeout = 5s;
  }
  void connect() {
    session.want();
    engine.run();
  }
  void answer_with(Fate fate) {
    ensemble.fate = [fate](const FakeRequest&) { return fate; };
  }
  [[nodiscard]] TimePoint safe_after(TimePoint sent) const { return lease_valid_until(sent, 9s); }

  test::ManualEngine engine;
  FakeEnsemble ensemble{engine};
  Options options;
  RecordingUser user;
  Session session{engine, options, ensemble.handles(), user};
};

TEST_F(SessionTest, NothingIsConnectedBeforeItIsWanted) {
  engine.advance(1h);
  EXPECT_EQ(ensemble.dialled, 0);
  EXPECT_FALSE(session.ready());
  EXPECT_EQ(session.epoch(), 0U);
}

TEST_F(SessionTest, ComesUpWhenItIsWanted) {
  connect();
  EXPECT_TRUE(session.ready());
  EXPECT_EQ(user.heard, Words{"new"});
  EXPECT_EQ(session.epoch(), 1U);
  EXPECT_EQ(session.id(), ensemble.last_session());
  EXPECT_EQ(session.granted_timeout(), 9s);
}

TEST_F(SessionTest, ItsUserIsNeverToldInsideACall) {
  session.want();
  EXPECT_TRUE(user.heard.empty());
}

TEST_F(SessionTest, WantingItAgainChangesNothing) {
  connect();
  for (int i = 0; i < 10; ++i) connect();
  EXPECT_EQ(ensemble.dialled, 1);
}

// --- Validity ---

TEST_F(SessionTest, IsValidForTheGrantedTimeoutAfterTheLastHeartbeatWasSent) {
  ensemble.granted = 6s;
  connect();
  EXPECT_EQ(session.valid_until(), lease_valid_until(engine.now(), 6s));
  EXPECT_EQ(user.alive, std::vector{session.valid_until()});
}

TEST_F(SessionTest, ASlowAnswerExtendsFromWhenItsRequestWasSent) {
  connect();
  answer_with(Fate::hold_answer);
  engine.advance(3s);
  const TimePoint sent = engine.now();
  engine.advance(2s);
  ensemble.release_answers();
  engine.run();
  EXPECT_EQ(session.valid_until(), safe_after(sent));
}

TEST_F(SessionTest, IsKeptAliveByAHeartbeatEveryThirdOfTheTimeout) {
  connect();
  const auto before = ensemble.count(Kind::sync);
  engine.advance(30s);
  EXPECT_EQ(ensemble.count(Kind::sync) - before, 10U);
  EXPECT_TRUE(session.ready());
  EXPECT_EQ(user.heard, Words{"new"});
  EXPECT_EQ(session.valid_until(), safe_after(engine.now()));
}

// A follower that is cut off from its leader goes on answering reads, while the leader ends the session.
TEST_F(SessionTest, TheHeartbeatIsNoRead) {
  connect();
  engine.advance(1h);
  EXPECT_EQ(ensemble.count(Kind::get) + ensemble.count(Kind::children), 0U);
}

TEST_F(SessionTest, AnsweredWritesStandInForHeartbeats) {
  connect();
  const auto before = ensemble.count(Kind::sync);
  for (int i = 0; i < 30; ++i) {
    engine.advance(1s);
    session.handle().remove("/nothing", [this](const Outcome& outcome) { session.heard(outcome.sent); });
    engine.run();
  }
  EXPECT_EQ(ensemble.count(Kind::sync), before);
  EXPECT_EQ(session.valid_until(), safe_after(engine.now()));
  EXPECT_GE(user.alive.size(), 10U) << "the user is told all the same";
}

TEST_F(SessionTest, WhatWasHeardLongAgoTakesNothingBack) {
  connect();
  engine.advance(3s);
  const TimePoint valid_until = session.valid_until();
  session.heard(engine.now() - 2s);
  EXPECT_EQ(session.valid_until(), valid_until);
}

// --- Suspended ---

TEST_F(SessionTest, ADisconnectSuspendsAndLosesNothing) {
  connect();
  const TimePoint valid_until = session.valid_until();
  ensemble.disconnect();
  engine.run();
  EXPECT_FALSE(session.ready());
  EXPECT_EQ(session.problem().code, errc::unavailable);
  EXPECT_EQ(user.heard, (Words{"new", "suspended"}));
  EXPECT_EQ(session.valid_until(), valid_until);
  engine.advance(5s);
  ensemble.reconnect();
  engine.run();
  EXPECT_TRUE(session.ready());
  EXPECT_EQ(user.heard, (Words{"new", "suspended", "again"}));
  EXPECT_EQ(session.epoch(), 1U);
  EXPECT_EQ(session.valid_until(), safe_after(engine.now())) << "a heartbeat follows the reconnection at once";
}

TEST_F(SessionTest, AReconnectionAloneExtendsNothing) {
  connect();
  const TimePoint valid_until = session.valid_until();
  ensemble.disconnect();
  engine.advance(5s);
  answer_with(Fate::hold_answer);
  ensemble.reconnect();
  engine.run();
  EXPECT_EQ(session.valid_until(), valid_until);
  engine.advance(valid_until - engine.now());
  EXPECT_EQ(user.heard, (Words{"new", "suspended", "again", "lost"}));
}

// --- Lost ---

TEST_F(SessionTest, IsLostAtItsDeadlineWhenTheServersAreOutOfReach) {
  connect();
  const TimePoint deadline = session.valid_until();
  ensemble.disconnect();
  engine.advance(deadline - engine.now() - 1ns);
  EXPECT_EQ(user.heard, (Words{"new", "suspended"}));
  engine.advance(1ns);
  EXPECT_EQ(user.heard, (Words{"new", "suspended", "lost"}));
  EXPECT_EQ(user.reasons.back().code, errc::lost);
}

TEST_F(SessionTest, IsLostAtItsDeadlineWhenOnlyTheAnswersStayAway) {
  connect();
  answer_with(Fate::hold_answer);
  const TimePoint deadline = session.valid_until();
  engine.advance(deadline - engine.now());
  EXPECT_EQ(user.heard, (Words{"new", "lost"}));
}

// Somebody else may count on its being over.
TEST_F(SessionTest, ASessionPastItsDeadlineIsClosedEvenIfTheServerStillKnowsIt) {
  connect();
  (void)ensemble.put("/a/node", "", session.id());
  answer_with(Fate::hold_answer);
  engine.advance(session.valid_until() - engine.now());
  EXPECT_FALSE(ensemble.exists("/a/node"));
  ensemble.fate = nullptr;
  engine.advance(1s);
  EXPECT_TRUE(session.ready());
  EXPECT_EQ(session.epoch(), 2U);
  EXPECT_EQ(user.heard, (Words{"new", "lost", "new"}));
}

TEST_F(SessionTest, AProcessThatSleptThroughTheDeadlineIsNotReadyBeforeAnythingRuns) {
  connect();
  engine.manual_clock().advance(10s);
  EXPECT_FALSE(session.ready());
  session.heard(engine.now());
  EXPECT_LT(session.valid_until(), engine.now()) << "nothing is brought back to life";
  engine.run();
  EXPECT_EQ(user.heard, (Words{"new", "lost"}));
}

TEST_F(SessionTest, AReconnectionPastTheDeadlineComesTooLate) {
  connect();
  ensemble.disconnect();
  engine.run();
  engine.manual_clock().advance(10s);
  ensemble.reconnect();
  engine.run();
  EXPECT_EQ(user.heard, (Words{"new", "suspended", "lost"}));
}

TEST_F(SessionTest, AnExpiryIsALossAndANewSessionFollows) {
  connect();
  const auto first = session.id();
  ensemble.expire();
  engine.run();
  EXPECT_EQ(user.heard, (Words{"new", "lost"}));
  EXPECT_EQ(user.reasons.back().code, errc::lost);
  EXPECT_FALSE(session.ready());
  EXPECT_EQ(session.problem().code, errc::unavailable);
  EXPECT_LT(session.valid_until(), engine.now());
  engine.advance(1s);
  EXPECT_EQ(user.heard, (Words{"new", "lost", "new"}));
  EXPECT_EQ(session.epoch(), 2U);
  EXPECT_NE(session.id(), first);
  EXPECT_EQ(ensemble.closed, 1) << "the handle of the expired session";
}

TEST_F(SessionTest, AnExpiryIsHeardOfAfterReconnecting) {
  connect();
  ensemble.disconnect();
  ensemble.expire();
  engine.advance(1s);
  EXPECT_EQ(user.heard, (Words{"new", "suspended"}));
  ensemble.reconnect();
  engine.run();
  EXPECT_EQ(user.heard, (Words{"new", "suspended", "lost"}));
}

TEST_F(SessionTest, EveryRequestOfALostSessionIsAnsweredBeforeTheNextOneIsReady) {
  connect();
  answer_with(Fate::hold_answer);
  std::vector<Problem> answers;
  std::uint64_t epoch = 0;
  for (int i = 0; i < 3; ++i) {
    session.handle().remove("/x", [&](const Outcome& outcome) {
      answers.push_back(outcome.problem);
      epoch = session.epoch();
    });
  }
  engine.advance(session.valid_until() - engine.now());
  EXPECT_EQ(answers, std::vector<Problem>(3, Problem::session_over));
  EXPECT_EQ(epoch, 1U);
}

TEST_F(SessionTest, ASessionThatKeepsEndingIsNotMadeAnewWithoutPause) {
  answer_with(Fate::hold_answer);  // no heartbeat is ever answered
  connect();
  for (int i = 0; i < 1000; ++i) {
    ensemble.expire();
    engine.advance(10ms);
  }
  EXPECT_LE(ensemble.dialled, 30);
}

// Two servers of one ensemble that disagree about the bounds.
TEST_F(SessionTest, AServerThatGrantsLessThanTheOneBeforeEndsTheSession) {
  connect();
  ensemble.disconnect();
  ensemble.granted = 4s;
  ensemble.reconnect();
  engine.run();
  EXPECT_EQ(user.heard, (Words{"new", "suspended", "lost"}));
}

// --- Connections that cannot be had ---

TEST_F(SessionTest, SaysWhyThereIsNoSessionWithinTheConnectTimeout) {
  ensemble.dialling = Dialling::silence;
  connect();
  EXPECT_EQ(session.problem().code, errc::unavailable);
  engine.advance(5s);
  EXPECT_EQ(user.heard, Words{"suspended"});
  EXPECT_NE(session.problem().detail.find("h:2181"), std::string::npos);
  ensemble.dialling = Dialling::accept;
  ensemble.reconnect();
  engine.run();
  EXPECT_EQ(user.heard, (Words{"suspended", "new"})) << "the client library had gone on trying";
  EXPECT_EQ(ensemble.dialled, 1);
  EXPECT_FALSE(session.problem().code);
}

TEST_F(SessionTest, AnAttemptThatCannotEvenBeginIsRepeatedWithGrowingPauses) {
  ensemble.dialling = Dialling::fail;
  connect();
  EXPECT_EQ(user.heard, Words{"suspended"});
  engine.advance(60s);
  EXPECT_GE(ensemble.dialled, 30);
  EXPECT_LE(ensemble.dialled, 80);
  ensemble.dialling = Dialling::accept;
  engine.advance(2s);
  EXPECT_TRUE(session.ready());
}

TEST_F(SessionTest, WhoeverNeedsItDoesNotWaitForTheEndOfThePause) {
  ensemble.dialling = Dialling::fail;
  connect();
  engine.advance(60s);
  ensemble.dialling = Dialling::accept;
  session.want();
  engine.advance(50ms);
  EXPECT_TRUE(session.ready());
}

TEST_F(SessionTest, AnImpatientUserDoesNotDialForEachWish) {
  ensemble.dialling = Dialling::fail;
  for (int i = 0; i < 1000; ++i) {
    connect();
    engine.advance(1ms);
  }
  EXPECT_LE(ensemble.dialled, 30);
}

TEST_F(SessionTest, AFactoryThatThrowsIsToldToTheUserLater) {
  Session broken(
      engine, options,
      [](Executor&, const Options&, Handle::Listener&) -> std::unique_ptr<Handle> {
        throw Error(errc::unavailable, "no threads");
      },
      user);
  broken.want();
  EXPECT_TRUE(user.heard.empty());
  engine.run();
  EXPECT_EQ(user.heard, Words{"suspended"});
  EXPECT_NE(broken.problem().detail.find("no threads"), std::string::npos);
}

TEST_F(SessionTest, RefusedCredentialsAreFinalUntilSomebodyWantsItAgain) {
  ensemble.dialling = Dialling::refuse_auth;
  connect();
  EXPECT_EQ(user.heard, Words{"suspended"});
  EXPECT_EQ(user.reasons.back().code, errc::access_denied);
  EXPECT_EQ(session.problem().code, errc::access_denied);
  engine.advance(1h);
  EXPECT_EQ(ensemble.dialled, 1) << "nothing is retried that cannot succeed";
  session.want();
  engine.advance(50ms);
  EXPECT_EQ(ensemble.dialled, 2);
}

// --- Watches ---

class SessionWatchTest : public SessionTest {
 protected:
  std::unique_ptr<Session::Watch> watch_node() {
    auto watch = session.watch([this] { ++fired; });
    session.handle().get("/a", watch->id(), [](const Outcome&, const Handle::Node&) {});
    engine.run();
    return watch;
  }
  int fired = 0;
};

TEST_F(SessionWatchTest, AWatchFiresOnceWhenItsNodeGoes) {
  connect();
  (void)ensemble.put("/a");
  const auto watch = watch_node();
  EXPECT_EQ(fired, 0);
  ensemble.remove("/a");
  engine.run();
  EXPECT_EQ(fired, 1);
  (void)ensemble.put("/a");
  ensemble.expire();
  engine.run();
  EXPECT_EQ(fired, 1);
}

TEST_F(SessionWatchTest, AForgottenWatchDoesNotFire) {
  connect();
  (void)ensemble.put("/a");
  auto watch = watch_node();
  ensemble.remove("/a");
  watch.reset();
  engine.run();
  EXPECT_EQ(fired, 0);
}

TEST_F(SessionWatchTest, AWatchOutlivesADisconnectAndHearsWhatItMissed) {
  connect();
  (void)ensemble.put("/a");
  const auto watch = watch_node();
  ensemble.disconnect();
  ensemble.remove("/a");
  engine.run();
  EXPECT_EQ(fired, 0);
  ensemble.reconnect();
  engine.run();
  EXPECT_EQ(fired, 1);
}

TEST_F(SessionWatchTest, TheWatchesOfALostSessionFire) {
  connect();
  (void)ensemble.put("/a");
  const auto one = watch_node();
  const auto two = watch_node();
  ensemble.expire();
  engine.run();
  EXPECT_EQ(fired, 2);
}

TEST_F(SessionWatchTest, AWatchMayForgetAnotherOneWhileTheyFire) {
  connect();
  std::unique_ptr<Session::Watch> second;
  const auto first = session.watch([&] {
    ++fired;
    second.reset();
  });
  second = session.watch([this] { ++fired; });
  ensemble.expire();
  engine.run();
  EXPECT_EQ(fired, 1);
}

// --- The end ---

TEST_F(SessionTest, ClosingEndsTheSessionAtTheServer) {
  connect();
  (void)ensemble.put("/a/node", "", session.id());
  bool closed = false;
  session.close([&] { closed = true; });
  EXPECT_FALSE(closed) << "never inside the call";
  engine.run();
  EXPECT_TRUE(closed);
  EXPECT_FALSE(ensemble.exists("/a/node"));
  EXPECT_FALSE(session.ready());
  engine.advance(1h);
  session.want();
  engine.advance(1h);
  EXPECT_EQ(ensemble.dialled, 1);
  EXPECT_EQ(user.heard, Words{"new"}) << "closing is no loss";
}

TEST_F(SessionTest, ClosingWhatWasNeverOpenedIsDoneAtOnce) {
  bool closed = false;
  session.close([&] { closed = true; });
  engine.run();
  EXPECT_TRUE(closed);
}

TEST_F(SessionTest, ClosingWhileConnectingOrPausing) {
  for (const Dialling dialling : {Dialling::silence, Dialling::fail}) {
    Session other(engine, options, ensemble.handles(), user);
    ensemble.dialling = dialling;
    other.want();
    engine.run();
    bool closed = false;
    other.close([&] { closed = true; });
    engine.run();
    EXPECT_TRUE(closed);
  }
  EXPECT_EQ(ensemble.closed, 2);
}

TEST_F(SessionTest, ClosingWaitsForSessionsThatAreStillBeingEnded) {
  connect();
  ensemble.expire();
  while (user.heard.back() != "lost") ASSERT_TRUE(engine.run_one());
  bool closed = false;
  session.close([&] { closed = ensemble.closed == 1; });
  engine.run();
  EXPECT_TRUE(closed);
}

}  // namespace

}  // namespace dlock::zookeeper
