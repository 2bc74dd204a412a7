#include "backends/zookeeper/connection/session.hpp"

#include "session_fixture.hpp"

namespace dlock::zookeeper {

namespace {

using Kind = FakeRequest::Kind;

TEST_F(SessionTest, NothingIsConnectedBeforeItIsWanted) {
  engine.advance(1h);
  EXPECT_EQ(ensemble.dialled, 0);
  EXPECT_FALSE(session.ready());
  EXPECT_EQ(session.epoch(), 0U);
}

TEST_F(ReadySessionTest, ComesUpWhenItIsWanted) {
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

TEST_F(ReadySessionTest, WantingItAgainChangesNothing) {
  for (int i = 0; i < 10; ++i) connect();
  EXPECT_EQ(ensemble.dialled, 1);
}

// --- Validity ---

TEST_F(SessionTest, IsValidForTheGrantedTimeoutAfterItWasAskedFor) {
  ensemble.granted = 6s;
  ensemble.answers_after = 700ms;
  const TimePoint asked = engine.now();
  session.want();
  engine.advance(1s);
  ASSERT_TRUE(session.ready());
  EXPECT_EQ(session.valid_until(), lease_valid_until(asked, 6s));
  EXPECT_EQ(user.alive, std::vector{session.valid_until()});
}

TEST_F(ReadySessionTest, IsKeptAliveByAHeartbeatEveryQuarterOfTheTimeout) {
  const auto before = ensemble.heartbeats();
  engine.advance(27s);
  EXPECT_EQ(ensemble.heartbeats() - before, 12U);
  EXPECT_TRUE(session.ready());
  EXPECT_EQ(user.heard, Words{"new"});
  EXPECT_EQ(session.valid_until(), safe_after(engine.now()));
}

// A server that is cut off from the others goes on answering reads, and as the leader even syncs, while the others end
// the session.
TEST_F(ReadySessionTest, TheHeartbeatIsAWrite) {
  engine.advance(1h);
  EXPECT_GT(ensemble.heartbeats(), 0U);
  EXPECT_EQ(ensemble.heartbeats(), ensemble.requests.size());
}

TEST_F(ReadySessionTest, AHeartbeatThatIsNotAnsweredIsNotFollowedByAnother) {
  answer_with(Fate::hold_answer);
  const auto before = ensemble.heartbeats();
  engine.advance(8s);
  EXPECT_EQ(ensemble.heartbeats(), before + 1);
}

TEST_F(SessionTest, AHeartbeatNeedsNoRights) {
  ensemble.closed_nodes = {"/"};
  connect();
  engine.advance(1min);
  EXPECT_EQ(user.heard, Words{"new"});
}

// With enableEagerACLCheck a server that is cut off from the others may say so by itself.
TEST_F(ReadySessionTest, AHeartbeatThatIsForbiddenIsNone) {
  answer_with(Fate::forbid);
  engine.advance(session.valid_until() - engine.now());
  EXPECT_EQ(user.heard, (Words{"new", "lost"}));
}

// Trouble at the beginning, then good for a day: the next session is asked for without a long pause, although this one
// was not heard of again since its connection was made anew.
TEST_F(SessionTest, AConnectionThatStandsAgainHasNotToProveItselfAnew) {
  ensemble.dialling = FakeEnsemble::Dialling::fail;
  connect();
  engine.advance(1min);
  ensemble.dialling = FakeEnsemble::Dialling::accept;
  engine.advance(24h);
  ASSERT_TRUE(session.ready());
  ensemble.disconnect();
  engine.run();
  answer_with(Fate::hold_answer);
  ensemble.reconnect();
  engine.run();
  const int dialled = ensemble.dialled;
  ensemble.expire();
  engine.advance(50ms);
  EXPECT_GT(ensemble.dialled, dialled);
}

TEST_F(ReadySessionTest, SaysWhyItIsOverBeforeItsTimerDoes) {
  engine.manual_clock().advance(9s);
  EXPECT_FALSE(session.ready());
  EXPECT_EQ(session.problem().code, errc::unavailable);
  EXPECT_NE(session.problem().detail.find("9s"), std::string::npos) << session.problem().detail;
}

TEST_F(ReadySessionTest, AHeartbeatThatWasNotCarriedOutIsNone) {
  answer_with(Fate::refuse);
  engine.advance(session.valid_until() - engine.now());
  EXPECT_EQ(user.heard, (Words{"new", "lost"}));
}

TEST_F(ReadySessionTest, AnsweredWritesStandInForHeartbeats) {
  const auto before = ensemble.heartbeats();
  for (int i = 0; i < 30; ++i) {
    engine.advance(1s);
    session.handle().remove("/nothing", [this](const Outcome& outcome) { session.acknowledged(outcome.sent); });
    engine.run();
  }
  EXPECT_EQ(ensemble.heartbeats(), before);
  EXPECT_EQ(session.valid_until(), lease_valid_until(engine.now() - 3s, 9s));
  EXPECT_GE(user.alive.size(), 10U) << "the user is told all the same";
}

// What the session before was heard of last is nearly as young as the new one's first heartbeat.
TEST_F(ReadySessionTest, WhatTheSessionBeforeSentIsNothingToTheNext) {
  engine.advance(2250ms);
  ensemble.answers_after = 100ms;
  ensemble.expire();
  engine.advance(120ms);
  ASSERT_EQ(user.heard, (Words{"new", "lost", "new"}));
  const TimePoint asked = session.valid_until();
  engine.advance(2300ms);
  EXPECT_EQ(session.valid_until(), asked + 100ms) << "the heartbeat that followed the connection counts";
}

// --- Suspended ---

TEST_F(ReadySessionTest, ADisconnectSuspendsAndLosesNothing) {
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
  EXPECT_EQ(session.valid_until(), valid_until);
  const TimePoint reconnected = engine.now();
  engine.advance(2250ms);
  EXPECT_EQ(session.valid_until(), lease_valid_until(reconnected, 9s))
      << "a heartbeat follows the reconnection at once";
}

TEST_F(ReadySessionTest, AReconnectionAloneExtendsNothing) {
  const TimePoint valid_until = session.valid_until();
  ensemble.disconnect();
  engine.advance(5s);
  answer_with(Fate::hold_answer);
  ensemble.reconnect();
  engine.run();
  EXPECT_EQ(session.valid_until(), valid_until);
  engine.advance(valid_until - engine.now());
  EXPECT_EQ(user.heard, (Words{"new", "suspended", "lost"}));
}

// --- Lost ---

TEST_F(ReadySessionTest, IsLostAtItsDeadlineWhenTheServersAreOutOfReach) {
  const TimePoint deadline = session.valid_until();
  ensemble.disconnect();
  engine.advance(deadline - engine.now() - 1ns);
  EXPECT_EQ(user.heard, (Words{"new", "suspended"}));
  engine.advance(1ns);
  EXPECT_EQ(user.heard, (Words{"new", "suspended", "lost"}));
  EXPECT_EQ(user.reasons.back().code, errc::lost);
}

TEST_F(ReadySessionTest, IsLostAtItsDeadlineWhenOnlyTheAnswersStayAway) {
  answer_with(Fate::hold_answer);
  const TimePoint deadline = session.valid_until();
  engine.advance(deadline - engine.now());
  EXPECT_EQ(user.heard, (Words{"new", "lost"}));
}

// Somebody else may count on its being over.
TEST_F(ReadySessionTest, ASessionPastItsDeadlineIsClosedEvenIfTheServerStillKnowsIt) {
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

TEST_F(ReadySessionTest, AProcessThatSleptThroughTheDeadlineIsNotReadyBeforeAnythingRuns) {
  const TimePoint deadline = session.valid_until();
  engine.manual_clock().advance(deadline - engine.now());
  EXPECT_FALSE(session.ready());
  session.acknowledged(engine.now());
  EXPECT_EQ(session.valid_until(), deadline) << "nothing is brought back to life";
  engine.run();
  EXPECT_EQ(user.heard, (Words{"new", "lost"}));
}

TEST_F(ReadySessionTest, WhatIsHeardOfASessionThatIsOverBringsNothingBack) {
  engine.advance(5s);
  ensemble.dialling = FakeEnsemble::Dialling::silence;
  ensemble.expire();
  engine.advance(2s);
  EXPECT_EQ(user.heard, (Words{"new", "lost"}));
  session.acknowledged(engine.now());
  EXPECT_LT(session.valid_until(), engine.now());
}

TEST_F(ReadySessionTest, AReconnectionAtTheDeadlineComesTooLate) {
  ensemble.disconnect();
  engine.run();
  engine.manual_clock().advance(session.valid_until() - engine.now());
  ensemble.reconnect();
  engine.run();
  EXPECT_EQ(user.heard, (Words{"new", "suspended", "lost"}));
}

TEST_F(ReadySessionTest, AConnectionThatComesTooLateMayBreakUnheard) {
  ensemble.disconnect();
  engine.run();
  engine.manual_clock().advance(10s);
  ensemble.reconnect();
  ensemble.disconnect();
  engine.run();
  EXPECT_EQ(user.heard, (Words{"new", "suspended", "lost"}));
}

TEST_F(ReadySessionTest, AnExpiryIsALossAndANewSessionFollows) {
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

TEST_F(ReadySessionTest, AnExpiryIsHeardOfAfterReconnecting) {
  ensemble.disconnect();
  ensemble.expire();
  engine.advance(1s);
  EXPECT_EQ(user.heard, (Words{"new", "suspended"}));
  ensemble.reconnect();
  engine.run();
  EXPECT_EQ(user.heard, (Words{"new", "suspended", "lost"}));
}

TEST_F(ReadySessionTest, EveryRequestOfALostSessionIsAnsweredBeforeTheNextOneIsReady) {
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

// Whoever hears of the loss can still stop before somebody else is let in.
TEST_F(ReadySessionTest, ALossIsToldBeforeTheSessionIsClosed) {
  bool was_closed = false;
  user.when_lost = [&] { was_closed = ensemble.closed > 0; };
  answer_with(Fate::hold_answer);
  engine.advance(session.valid_until() - engine.now());
  EXPECT_EQ(user.heard, (Words{"new", "lost"}));
  EXPECT_FALSE(was_closed);
  EXPECT_EQ(ensemble.closed, 1);
}

// All clients that lose their sessions at the same moment would dial at the same moment.
TEST_F(ReadySessionTest, WhoeverWantsALostSessionBackWaitsForItsTurn) {
  user.when_lost = [&] { session.want(); };
  engine.advance(1s);
  ensemble.expire();
  engine.run();
  EXPECT_EQ(ensemble.dialled, 1);
  engine.advance(20ms);
  EXPECT_EQ(ensemble.dialled, 2);
}

TEST_F(ReadySessionTest, OnceALostSessionHadItsTurnAWishEndsThePause) {
  ensemble.dialling = FakeEnsemble::Dialling::silence;
  ensemble.expire();
  engine.advance(60s);  // by now the pauses are long
  const int left = ensemble.closed;
  for (int i = 0; i < 60'000 && ensemble.closed == left; ++i) engine.advance(1ms);
  ASSERT_GT(ensemble.closed, left) << "a silent host is left";
  ensemble.dialling = FakeEnsemble::Dialling::accept;
  session.want();
  engine.advance(50ms);
  EXPECT_TRUE(session.ready());
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
TEST_F(ReadySessionTest, AServerThatGrantsLessThanTheOneBeforeEndsTheSession) {
  ensemble.disconnect();
  ensemble.granted = 4s;
  ensemble.reconnect();
  engine.run();
  EXPECT_EQ(user.heard, (Words{"new", "suspended", "lost"}));
}

// --- Rest ------------------------------------------------------------------------------------------------------------

TEST_F(ReadySessionTest, ARestGivesTheSessionUpUntilItIsWantedAgain) {
  const std::uint64_t epoch = session.epoch();
  bool fired = false;
  session.on_watch([&](Handle::WatchId id) { fired = id == Session::all_watches; });
  user.heard.clear();
  session.rest();
  EXPECT_FALSE(session.ready());
  EXPECT_TRUE(session.idle());
  EXPECT_TRUE(fired);
  engine.advance(1min);
  EXPECT_EQ(ensemble.closed, 1);
  EXPECT_EQ(ensemble.dialled, 1);
  EXPECT_EQ(user.heard, Words{});
  connect();
  EXPECT_TRUE(session.ready());
  EXPECT_GT(session.epoch(), epoch);
  EXPECT_EQ(user.heard, Words{"new"});
}

TEST_F(ReadySessionTest, AWishAfterARestIsHeardThoughTheSessionHadJustBeenLost) {
  ensemble.expire();
  engine.run();
  session.rest();
  connect();
  EXPECT_TRUE(session.ready());
}

TEST_F(SessionTest, ARestEndsAttempts) {
  session.rest();
  EXPECT_EQ(ensemble.closed, 0);
  for (const auto refusal : {FakeEnsemble::Dialling::silence, FakeEnsemble::Dialling::fail}) {
    ensemble.dialling = refusal;
    connect();
    session.rest();
    const int dialled = ensemble.dialled;
    user.heard.clear();
    engine.advance(1min);
    EXPECT_EQ(user.heard, Words{});
    EXPECT_EQ(ensemble.dialled, dialled);
    EXPECT_EQ(ensemble.closed, dialled);
  }
}

TEST_F(ReadySessionTest, ARestIsNoWayBackFromTheEnd) {
  session.close([] {});
  session.rest();
  session.want();
  engine.advance(1min);
  EXPECT_EQ(ensemble.dialled, 1);
  EXPECT_EQ(session.problem().code, errc::closed);
}

}  // namespace

}  // namespace dlock::zookeeper
