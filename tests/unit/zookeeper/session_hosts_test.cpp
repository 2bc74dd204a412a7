// Which host a session is looked for at, and for how long: hosts that never answer, and outages. For connections that
// break under a session see session_test.cpp.
#include <algorithm>
#include <set>

#include "session_fixture.hpp"

namespace dlock::zookeeper {

namespace {

using Dialling = FakeEnsemble::Dialling;

std::vector<Host> hosts_called(const std::vector<std::string>& names) {
  std::vector<Host> hosts;
  for (const std::string& name : names) hosts.push_back({.name = name, .port = 2181});
  return hosts;
}

// --- Hosts that accept connections and never answer ------------------------------------------------------------------

TEST(SessionHosts, ASilentHostIsLeftForTheOneThatAnswersWithinTheConnectTimeout) {
  std::set<std::string> first;
  for (std::uint64_t seed = 1; seed <= 16; ++seed) {
    test::ManualEngine engine(seed);
    FakeEnsemble ensemble(engine);
    ensemble.silent = {"silent"};
    Options options;
    options.hosts = hosts_called({"silent", "good"});
    options.session_timeout = 30s;
    options.connect_timeout = 5s;
    RecordingUser user;
    Session session(engine, options, ensemble.handles(), user);
    session.want();
    engine.advance(options.connect_timeout - 1ns);
    EXPECT_TRUE(session.ready());
    EXPECT_EQ(user.heard, Words{"new"});
    EXPECT_EQ(ensemble.dialled_first.back(), "good");
    first.insert(ensemble.dialled_first.front());
  }
  EXPECT_EQ(first.size(), 2U) << "clients are spread over the hosts";
}

TEST_F(SessionTest, EachHostGetsItsTurn) {
  options.hosts = hosts_called({"a", "b", "c", "d"});
  options.session_timeout = 30s;
  ensemble.dialling = Dialling::silence;
  connect();
  engine.advance(5s - 1ns);
  ASSERT_EQ(ensemble.dialled_first.size(), 4U);
  EXPECT_EQ(std::set(ensemble.dialled_first.begin(), ensemble.dialled_first.end()).size(), 4U);
  EXPECT_EQ(ensemble.closed, 3);
  EXPECT_EQ(ensemble.dropped, 0) << "what the servers may have made of it yet is ended";
  EXPECT_TRUE(user.heard.empty());
  engine.advance(1ns);
  EXPECT_EQ(user.heard, Words{"suspended"}) << "none of them within the connect timeout";
  EXPECT_EQ(session.problem().code, errc::unavailable);
}

TEST_F(SessionTest, WhereAllAreSilentTheAttemptsBecomeRarer) {
  options.hosts = hosts_called({"a", "b"});
  options.session_timeout = 30s;
  options.connect_timeout = 200ms;
  ensemble.dialling = Dialling::silence;
  connect();
  engine.advance(10min);
  EXPECT_GE(ensemble.dialled, 30) << "a host that comes back is found within half of the session timeout";
  EXPECT_LE(ensemble.dialled, 60);
  ensemble.dialling = Dialling::accept;
  engine.advance(18s);
  EXPECT_TRUE(session.ready());
}

TEST_F(SessionTest, AServerThatNeedsLongerThanTheConnectTimeoutIsReachedInTheEnd) {
  options.connect_timeout = 100ms;
  ensemble.answers_after = 500ms;
  connect();
  engine.advance(3s);
  EXPECT_TRUE(session.ready());
}

TEST_F(SessionTest, AnAttemptAtASilentHostLastsNoLongerThanHalfOfTheSessionTimeout) {
  options.hosts = hosts_called({"silent", "good"});
  options.connect_timeout = 1min;
  ensemble.silent = {"silent"};
  connect();
  engine.advance(4500ms);
  EXPECT_TRUE(session.ready());
}

// What is asked for is less than servers grant.
TEST_F(SessionTest, AShortSessionLeavesTheNetworkTheTimeThatItNeeds) {
  options.session_timeout = 200ms;
  ensemble.granted = 4s;
  ensemble.answers_after = 300ms;
  connect();
  engine.advance(5s);
  EXPECT_TRUE(session.ready());
}

// It may well come back at any moment, and the library goes from one to the next by itself.
TEST_F(SessionTest, HostsThatRefuseAreLeftToTheClientLibrary) {
  ensemble.dialling = Dialling::refuse;
  connect();
  engine.advance(1h);
  EXPECT_EQ(ensemble.dialled, 1);
  EXPECT_EQ(user.heard, Words{"suspended"});
}

// To end its handle might end the session, and let others in.
TEST_F(ReadySessionTest, ASessionThatMayHoldLocksIsNotGivenUpForASilentHost) {
  ensemble.disconnect();
  ensemble.dialling = Dialling::silence;
  engine.advance(session.valid_until() - engine.now() - 1ns);
  EXPECT_EQ(ensemble.dialled, 1);
  EXPECT_EQ(ensemble.closed, 0);
  ensemble.dialling = Dialling::accept;
  ensemble.reconnect();
  engine.run();
  EXPECT_EQ(user.heard, (Words{"new", "suspended", "again"}));
}

// --- Sessions that come late -----------------------------------------------------------------------------------------

TEST_F(SessionTest, IsValidFromBeforeTheAttemptNotFromTheAnswer) {
  ensemble.dialling = Dialling::silence;
  connect();
  const TimePoint asked = engine.now();
  engine.advance(4s);
  ensemble.dialling = Dialling::accept;
  ensemble.reconnect();
  engine.run();
  ASSERT_TRUE(session.ready());
  EXPECT_EQ(ensemble.dialled, 1);
  EXPECT_EQ(session.valid_until(), lease_valid_until(asked, 9s));
}

TEST_F(SessionTest, TheAttemptAtTheNextHostCountsWhereThatOneAnswers) {
  options.hosts = hosts_called({"a", "b"});
  ensemble.dialling = Dialling::silence;
  connect();
  engine.advance(2500ms);  // its half of the connect timeout
  ASSERT_EQ(ensemble.dialled, 2);
  const TimePoint asked = engine.now();
  engine.advance(1s);
  ensemble.dialling = Dialling::accept;
  ensemble.reconnect();
  engine.run();
  ASSERT_TRUE(session.ready());
  EXPECT_EQ(session.valid_until(), lease_valid_until(asked, 9s));
}

// What the library asked for long ago would be valid for too short a time, or for none.
TEST_F(SessionTest, AfterALongOutageASessionIsAskedForAnew) {
  ensemble.dialling = Dialling::refuse;
  connect();
  engine.advance(1h);
  ensemble.dialling = Dialling::accept;
  ensemble.reconnect();
  engine.run();
  ASSERT_TRUE(session.ready());
  EXPECT_EQ(user.heard, (Words{"suspended", "new"}));
  EXPECT_EQ(session.valid_until(), lease_valid_until(engine.now(), 9s));
  EXPECT_EQ(session.epoch(), 1U);
  EXPECT_EQ(ensemble.closed, 1) << "the session that came late is ended";
  EXPECT_EQ(ensemble.dropped, 0);
}

// Servers that are slow every time: a session that is not valid yet is better than none.
TEST_F(SessionTest, ASessionThatComesLateTwiceIsTakenAndValidAfterItsHeartbeats) {
  ensemble.dialling = Dialling::refuse;
  connect();
  engine.advance(20s);
  ensemble.dialling = Dialling::accept;
  ensemble.reconnect();
  ensemble.dialling = Dialling::refuse;
  engine.run();
  ASSERT_EQ(ensemble.dialled, 2);
  const TimePoint asked = engine.now();
  engine.advance(20s);
  ensemble.dialling = Dialling::accept;
  ensemble.reconnect();
  engine.run();
  EXPECT_EQ(ensemble.dialled, 2);
  EXPECT_TRUE(session.ready());
  EXPECT_EQ(session.valid_until(), lease_valid_until(asked, 9s));
  const TimePoint connected = engine.now();
  engine.advance(2250ms);
  EXPECT_EQ(session.valid_until(), lease_valid_until(connected, 9s));
  EXPECT_EQ(user.heard, (Words{"suspended", "suspended", "new"}));
}

}  // namespace

}  // namespace dlock::zookeeper
