// The command connection: when it is made, what is said on it, and what becomes of requests when it fails.
#include <gtest/gtest.h>

#include "backend_fixture.hpp"
#include "tests/unit/support/reports.hpp"

namespace dlock::redis {

namespace {

using Dialling = FakeServer::Dialling;
using State = ConnectionEvent::State;
using ConnectionTest = BackendTest;

TEST_F(ConnectionTest, NothingIsConnectedBeforeItIsNeeded) {
  engine.advance(1h);
  EXPECT_EQ(server.dialled, 0);
}

TEST_F(ConnectionTest, IntroducesItselfBeforeAnythingElse) {
  set({.acquire = granted(7)});
  backend = make("redis://me:secret@localhost/3");
  const auto attempt = contend(false);
  ASSERT_TRUE(attempt->grant);
  const std::vector<Words> expected = {{"AUTH", "me", "secret"}, {"SELECT", "3"}, {"CLIENT", "SETNAME", "dlock:test"}};
  EXPECT_EQ(server.handshakes, expected);
  server.handshakes.clear();
  server.cut();
  engine.advance(100ms);
  EXPECT_EQ(server.handshakes, expected) << "again";
  EXPECT_EQ(host.connections, (std::vector{State::connected, State::reconnecting, State::connected}));
}

TEST_F(ConnectionTest, ARefusedConnectionFailsATryAtOnceAndNamesTheServer) {
  server.dialling = Dialling::refuse;
  const auto attempt = contend(false);
  ASSERT_TRUE(failed(*attempt, errc::unavailable, "localhost:6379"));
}

TEST_F(ConnectionTest, AServerThatCameBackIsFoundByTheNextTry) {
  server.dialling = Dialling::refuse;
  for (int i = 0; i < 20; ++i) {
    (void)contend(false);
    engine.advance(1s);
  }
  server.dialling = Dialling::accept;
  set({.acquire = granted(7)});
  const auto attempt = contend(false);
  engine.advance(50ms);
  EXPECT_TRUE(attempt->grant);
}

TEST_F(ConnectionTest, AConnectionThatHasGrantedOrRenewedALockWasGood) {
  set({.acquire = granted(7), .renew = number(1)});
  server.dialling = Dialling::refuse;
  const auto attempt = contend(true);
  engine.advance(1min);
  server.dialling = Dialling::accept;
  for (int i = 0; i < 1000 && !attempt->grant; ++i) engine.advance(10ms);
  ASSERT_TRUE(attempt->grant);
  server.cut();
  const int dialled = server.dialled;
  engine.advance(100ms);
  EXPECT_GT(server.dialled, dialled) << "as soon as after a first break";
  for (int i = 0; i < 10; ++i) {
    renew(*attempt);
    engine.run();
    ASSERT_TRUE(renewed);
    const int before = server.dialled;
    server.cut();
    engine.advance(20ms);
    EXPECT_GT(server.dialled, before) << i;
  }
}

TEST_F(ConnectionTest, AnImpatientCallerDoesNotDialForEachTry) {
  server.dialling = Dialling::refuse;
  for (int i = 0; i < 1000; ++i) {
    (void)contend(false);
    engine.advance(1ms);
  }
  EXPECT_LE(server.dialled, 25);
}

TEST_F(ConnectionTest, AServerThatDoesNotAcceptFailsATryWithinTheResponseTimeout) {
  server.dialling = Dialling::silence;
  const auto attempt = contend(false);
  engine.advance(2s);
  ASSERT_TRUE(failed(*attempt, errc::unavailable));
  EXPECT_TRUE(server.commands.empty());
}

// Servers before 6.0 have words of their own.
TEST_F(ConnectionTest, AWrongPasswordIsFinalAndNotShown) {
  for (const std::string what : {"WRONGPASS invalid username-password pair or user is disabled.",
                                 "ERR invalid password", "ERR Client sent AUTH, but no password is set"}) {
    server.answer = [&](FakeStream&, const Words& command) -> std::string {
      return command.front() == "AUTH" ? "-" + what + "\r\n" : "";
    };
    backend = make("redis://me:hidden@localhost");
    const auto attempt = contend(true);
    ASSERT_TRUE(failed(*attempt, errc::access_denied, what));
    EXPECT_EQ(attempt->failure->detail.find("hidden"), std::string::npos);
    const int dialled = server.dialled;
    engine.advance(1h);
    EXPECT_EQ(server.dialled, dialled) << "nothing is retried that cannot succeed";
  }
}

TEST_F(ConnectionTest, WhatAnswersTheHandshakeWithANumberIsNoRedis) {
  server.answer = [](FakeStream&, const Words& command) -> std::string {
    return command.front() == "SELECT" ? ":1\r\n" : "";
  };
  backend = make("redis://localhost/3");
  const auto attempt = contend(false);
  ASSERT_TRUE(failed(*attempt, errc::protocol, "the handshake"));
}

// H16: whatever comes late must not be taken for the answer to a later request.
TEST_F(ConnectionTest, AServerThatDoesNotAnswerLosesTheConnection) {
  const auto attempt = contend(false);
  engine.advance(2s);
  ASSERT_TRUE(failed(*attempt, errc::ambiguous));
  engine.advance(100ms);
  EXPECT_EQ(server.connections.size(), 1U);
  EXPECT_EQ(server.dialled, 2);
}

TEST_F(ConnectionTest, WhatWasSentIsAmbiguousAndWhatWasNotIsUnavailable) {
  const auto sent = contend(false);
  server.takes_bytes = false;
  const auto unsent = contend(false);
  server.cut();
  engine.run();
  ASSERT_TRUE(sent->failure && unsent->failure);
  EXPECT_EQ(sent->failure->code, errc::ambiguous);
  EXPECT_EQ(unsent->failure->code, errc::unavailable);
}

TEST_F(ConnectionTest, AnAnswerThatNobodyAskedForEndsTheConnection) {
  set({.acquire = granted(7)});
  (void)contend(false);
  server.connections.front()->reply("+surprise\r\n");
  engine.run();
  ASSERT_EQ(host.connections.back(), State::reconnecting);
}

// What has to be sent again arrives behind what was sent after it: a release behind the next acquire, for instance.
TEST_F(ConnectionTest, AScriptIsSentWholeAtItsFirstUseOnAConnection) {
  set({.acquire = granted(7)});
  for (int i = 0; i < 2; ++i) (void)contend(false);
  server.cut();
  engine.advance(100ms);
  (void)contend(false);
  const auto calls = server.calls("acquire");
  ASSERT_EQ(calls.size(), 3U);
  EXPECT_EQ(calls[0].front(), "EVAL");
  EXPECT_EQ(calls[1].front(), "EVALSHA");
  EXPECT_EQ(calls[2].front(), "EVAL");
}

// As a proxy does that lets no script through.
TEST_F(ConnectionTest, AServer_ThatHangsUpAtEachScript_IsAskedLessAndLessOftenAndReportedOnce) {
  bool refuses = true;
  set({.acquire = granted(7)});
  server.answer = [&refuses, answer = server.answer](FakeStream& wire, const Words& command) {
    const bool script = command.front().starts_with("EVAL");
    if (script && refuses) wire.close({errc::unavailable, "localhost:6379: closed"});
    return script && refuses ? std::string() : answer(wire, command);
  };
  const auto attempt = contend(true);
  engine.advance(10s);
  const int before = server.dialled;
  engine.advance(20s);
  EXPECT_LE(server.dialled - before, 2 * 40) << "with the subscriber";
  EXPECT_EQ(host.connections, std::vector{State::reconnecting});
  EXPECT_EQ(attempt->unreachable_reports.back().detail, "localhost:6379: closed; no request about locks was answered");
  refuses = false;
  engine.advance(2s);
  EXPECT_TRUE(attempt->grant);
  EXPECT_EQ(host.connections, (std::vector{State::reconnecting, State::connected}));
}

// A replica that takes writes grants what its master grants.
TEST_F(ConnectionTest, AServerThatIsNotTheMasterGrantsNothing) {
  set({.acquire = granted(7)});
  for (const std::string name : {"slave", "replica", "active-replica", "sentinel"}) {
    server.answer = [&](FakeStream&, const Words& command) -> std::string {
      if (command.front() == "ROLE") return role(name);
      return script_in(command) != nullptr ? granted(7) : "";
    };
    backend = make();
    const auto attempt = contend(false);
    ASSERT_TRUE(failed(*attempt, name == "sentinel" ? errc::unsupported : errc::unavailable,
                       name == "sentinel" ? "redis-sentinel://" : "not the master (role \"" + name + "\")"));
    EXPECT_TRUE(server.commands.empty()) << "nothing was asked of it";
    backend = make("redis://localhost?allow_replica=1");
    EXPECT_TRUE(contend(false)->grant);
    server.commands.clear();
  }
}

TEST_F(ConnectionTest, OfSeveralAddressesThatOfTheMasterIsFoundInOneAttempt) {
  server.addresses = 3;
  server.answer = [&](FakeStream&, const Words& command) -> std::string {
    if (command.front() == "ROLE") return role(server.dialled < 3 ? "slave" : "master");
    return script_in(command) != nullptr ? granted(7) : "";
  };
  EXPECT_TRUE(contend(false)->grant);
  EXPECT_EQ(server.dialled, 3);
  server.answer = [&](FakeStream&, const Words& command) { return command.front() == "ROLE" ? role("slave") : ""; };
  backend = make();
  ASSERT_TRUE(failed(*contend(false), errc::unavailable));
  EXPECT_EQ(server.dialled, 6) << "each address once per attempt";
}

TEST_F(ConnectionTest, AReplicaInAClusterIsNoServerByItself) {
  server.answer = [&](FakeStream&, const Words& command) -> std::string {
    if (command.front() == "ROLE") return role("slave");
    return command.front() == "INFO" ? bulk("# Cluster\r\ncluster_enabled:1\r\n") : "";
  };
  ASSERT_TRUE(failed(*contend(true), errc::unsupported, "redis-cluster://"));
}

// Whichever command this user may run; with neither, a warning.
TEST_F(ConnectionTest, TheRoleIsWhatRoleOrInfoSays) {
  const std::string denied = "-NOPERM this user has no permissions to run this command\r\n";
  const std::string unknown = "-ERR unknown command 'ROLE', with args beginning with: \r\n";
  struct Case {
    std::string role;
    std::string info;
    bool granted;
    std::size_t warnings;
  };
  for (const Case& each :
       {Case{denied, bulk("role:master\r\n"), true, 0}, Case{denied, bulk("role:slave\r\n"), false, 0},
        Case{unknown, bulk("role:slave\r\n"), false, 0}, Case{role("master"), denied, true, 0},
        Case{denied, denied, true, 1}, Case{"+OK\r\n", "+OK\r\n", true, 1}}) {
    host.warnings.clear();
    server.answer = [&](FakeStream&, const Words& command) -> std::string {
      if (command.front() == "ROLE") return each.role;
      if (command.front() == "INFO") return each.info;
      return script_in(command) != nullptr ? granted(7) : "";
    };
    backend = make();
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(contend(false)->grant.has_value(), each.granted) << each.role << each.info;
      server.cut();
      engine.advance(100ms);
    }
    EXPECT_EQ(host.warnings.size(), each.warnings) << each.role << each.info;
  }
}

TEST_F(ConnectionTest, AMasterThatIsDemotedIsLeftThoughItGrants) {
  for (const bool busy : {false, true}) {
    std::string name = "master";
    server.answer = [&](FakeStream&, const Words& command) -> std::string {
      if (command.front() == "ROLE") return role(name);
      if (command.front() == "PING") return "+PONG\r\n";
      return script_in(command) != nullptr ? granted(7) : "";
    };
    backend = make();
    ASSERT_TRUE(contend(false)->grant);
    engine.advance(3s);  // its role was asked for once, and is asked for again
    name = "active-replica";
    for (int i = 0; i < 50; ++i) {
      engine.advance(50ms);
      if (busy) (void)contend(false);
    }
    EXPECT_EQ(host.connections.back(), State::reconnecting) << busy;
    const auto attempt = contend(false);
    engine.advance(100ms);
    ASSERT_TRUE(failed(*attempt, errc::unavailable, "active-replica"));
  }
}

TEST_F(ConnectionTest, AnUnknownErrorEndsATryAndNotAWait) {
  set({.acquire = "-ERR something new\r\n"});
  ASSERT_TRUE(failed(*contend(false), errc::ambiguous, "something new"));
  server.answer = [](FakeStream&, const Words& command) {
    return command.front() == "SELECT" ? "-ERR something new\r\n" : "";
  };
  backend = make("redis://localhost/1");
  ASSERT_TRUE(failed(*contend(false), errc::unavailable, "something new")) << "nothing about a lock was sent";
  for (const std::string strategy : {"queue", "broadcast", "poll"}) {
    set({.acquire = "-ERR something new\r\n"});
    backend = make("redis://localhost?strategy=" + strategy);
    const auto waiting = contend(true);
    engine.advance(1min);
    EXPECT_FALSE(waiting->failure);
    set({.acquire = granted(7)});
    engine.advance(2s);
    EXPECT_TRUE(waiting->grant) << strategy;
  }
}

TEST_F(ConnectionTest, ASilentConnectionIsProbedAndLeft) {
  set({.acquire = granted(7)});
  (void)contend(false);
  engine.advance(1min);
  EXPECT_EQ(server.dialled, 1) << "the server answers PING";
  server.takes_bytes = false;
  engine.advance(5s);
  EXPECT_EQ(host.connections.at(1), State::reconnecting);
}

// H11, H16: it is we who slept.
TEST_F(ConnectionTest, AProcessThatWasStoppedTakesTheAnswersThatCameMeanwhile) {
  server.answer = [this](FakeStream& wire, const Words& command) -> std::string {
    if (script_in(command) != nullptr) {
      engine.manual_clock().advance(1min);
      wire.arrive(granted(7));
    }
    return "";
  };
  const auto attempt = contend(false, 24h);
  EXPECT_TRUE(attempt->grant);
  EXPECT_EQ(server.dialled, 1);
}

TEST_F(ConnectionTest, EvictionIsWarnedOfOnce) {
  server.answer = [](FakeStream&, const Words& command) -> std::string {
    if (script_in(command) != nullptr) return granted(7);
    if (command.front() != "INFO") return "";
    const std::string info = "# Memory\r\nmaxmemory:1000000\r\nmaxmemory_policy:allkeys-lru\r\n";
    return "$" + std::to_string(info.size()) + "\r\n" + info + "\r\n";
  };
  (void)contend(false);
  server.cut();
  engine.advance(100ms);
  ASSERT_EQ(host.warnings.size(), 1U);
  EXPECT_NE(host.warnings.front().reason.detail.find("allkeys-lru"), std::string::npos);
}

}  // namespace

}  // namespace dlock::redis
