// How a session comes up, what becomes of watches, and how it is closed. For its life and its loss see
// session_test.cpp.
#include "session_fixture.hpp"

namespace dlock::zookeeper {

namespace {

using Dialling = FakeEnsemble::Dialling;

// --- Connections that cannot be had ---

TEST_F(SessionTest, SaysWhyThereIsNoSessionWithinTheConnectTimeout) {
  options.session_timeout = 30s;
  ensemble.dialling = Dialling::refuse;
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

TEST_F(SessionTest, RefusedCredentialsAreFinalUntilSomebodyWantsItAgain) {
  ensemble.dialling = Dialling::refuse_auth;
  connect();
  EXPECT_EQ(user.heard, Words{"suspended"});
  EXPECT_EQ(user.reasons.front().code, errc::access_denied);
  EXPECT_EQ(session.problem().code, errc::access_denied);
  engine.advance(1h);
  EXPECT_EQ(ensemble.dialled, 1) << "nothing is retried that cannot succeed";
  session.want();
  engine.advance(50ms);
  EXPECT_EQ(ensemble.dialled, 2);
}

// --- Servers that hang up ---

TEST_F(SessionTest, AServerThatRequiresAuthentication_NamesTheReasonAndIsNotTriedAgain) {
  ensemble.dialling = Dialling::require_auth;
  connect();
  EXPECT_EQ(user.heard, Words{"suspended"});
  EXPECT_EQ(user.reasons.front().code, errc::access_denied);
  EXPECT_EQ(session.problem().code, errc::access_denied);
  EXPECT_NE(session.problem().detail.find("SESSIONCLOSEDREQUIRESASLAUTH"), std::string::npos);
  engine.advance(1h);
  EXPECT_EQ(ensemble.dialled, 1);
  EXPECT_EQ(ensemble.requests.size(), 1U) << "a second request would cost the answer to the first";
  ensemble.dialling = Dialling::accept;
  session.want();
  engine.advance(50ms);
  EXPECT_EQ(user.heard, (Words{"suspended", "new"}));
}

TEST_F(SessionTest, AServerThatClosesUponTheFirstRequest_IsTriedWithGrowingPausesAndNamesTheReasonOnce) {
  hang_up();
  connect();
  engine.advance(60s);
  EXPECT_GE(ensemble.dialled, 30);
  EXPECT_LE(ensemble.dialled, 80);
  EXPECT_EQ(user.heard, Words(user.heard.size(), "suspended"));
  EXPECT_EQ(user.good, 0);
  EXPECT_EQ(reasons().size(), 2U) << "one of a connection that broke, and one of a server that refuses";
  EXPECT_NE(session.problem().detail.find("auth="), std::string::npos) << session.problem().detail;
  ensemble.fate = nullptr;
  engine.advance(2s);
  EXPECT_TRUE(session.ready());
  EXPECT_EQ(user.good, 0) << "nothing about locks was asked";
  engine.advance(15s);
  EXPECT_EQ(user.good, 1) << "but it lasts";
}

TEST_F(ReadySessionTest, AServerThatRequiresAuthenticationAtAReconnection_EndsNoLockBeforeItsTime) {
  ensemble.disconnect();
  ensemble.dialling = Dialling::require_auth;
  ensemble.reconnect();
  engine.run();
  EXPECT_EQ(user.heard, (Words{"new", "suspended", "suspended"}));
  EXPECT_EQ(user.reasons.back().code, errc::access_denied);
  EXPECT_EQ(session.problem().code, errc::access_denied);
  ensemble.dialling = Dialling::accept;  // of another one
  ensemble.reconnect();
  engine.advance(1s);
  EXPECT_EQ(user.heard, (Words{"new", "suspended", "suspended", "again"}));
  ensemble.disconnect();
  ensemble.dialling = Dialling::require_auth;
  ensemble.reconnect();
  engine.advance(session.valid_until() - engine.now());
  EXPECT_EQ(user.heard.back(), "lost");
  EXPECT_NE(user.reasons.back().detail.find("SESSIONCLOSEDREQUIRESASLAUTH"), std::string::npos)
      << user.reasons.back().detail;
}

TEST_F(ReadySessionTest, AServerThatClosesUponTheFirstRequestOfAReconnection_IsAskedWithGrowingPauses) {
  hang_up();
  ensemble.disconnect();
  const auto before = ensemble.heartbeats();
  for (int i = 0; i < 4000; ++i) {
    ensemble.reconnect();  // as the client library does by itself
    engine.advance(1ms);
  }
  EXPECT_LE(ensemble.heartbeats() - before, 12U);
  EXPECT_EQ(reasons().size(), 2U);
  ensemble.fate = nullptr;
  engine.advance(2s);
  EXPECT_EQ(user.heard.back(), "again");
}

TEST_F(SessionTest, AnUnansweredFirstRequest_IsNamedWhenTheConnectTimeoutIsOver) {
  answer_with(Fate::hold_answer);
  connect();
  engine.advance(5s);
  EXPECT_EQ(user.heard, Words{"suspended"});
  EXPECT_NE(session.problem().detail.find("no answer to a request"), std::string::npos) << session.problem().detail;
}

// --- The end ---

TEST_F(ReadySessionTest, ClosingEndsTheSessionAtTheServer) {
  (void)ensemble.put("/a/node", "", session.id());
  bool closed = false;
  session.close([&] { closed = true; });
  EXPECT_FALSE(closed) << "never inside the call";
  engine.run();
  EXPECT_TRUE(closed);
  EXPECT_FALSE(ensemble.exists("/a/node"));
  EXPECT_FALSE(session.ready());
  EXPECT_EQ(session.problem().code, errc::closed);
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
    user.heard.clear();
    engine.advance(1min);
    EXPECT_EQ(user.heard, Words{});
  }
  EXPECT_EQ(ensemble.closed, 2);
}

TEST_F(ReadySessionTest, ClosingWaitsForSessionsThatAreStillBeingEnded) {
  ensemble.expire();
  while (user.heard.back() != "lost") ASSERT_TRUE(engine.run_one());
  bool closed = false;
  session.close([&] { closed = ensemble.closed == 1; });
  engine.run();
  EXPECT_TRUE(closed);
}

}  // namespace

}  // namespace dlock::zookeeper
