// The connections of a client: when they are made and what is said on them first, what becomes of requests when one
// fails, how often a server that refuses or that breaks each connection is asked and dialled, and how soon all goes on
// when it works again.
#include <gtest/gtest.h>

#include "backend_fixture.hpp"

namespace dlock::redis {
namespace {

using Dialling = FakeServer::Dialling;
using State = ConnectionEvent::State;
using ConnectionTest = BackendTest;
using OutageTest = BackendTest;  // a server that refuses
using test::failed;

constexpr auto read_only = "-READONLY You can't write against a read only replica.\r\n";
constexpr auto loading = "-LOADING Redis is loading the dataset in memory\r\n";
constexpr auto denied = "-NOPERM this user has no permissions to run this command\r\n";

TEST_F(ConnectionTest, Connected_LoginDatabaseAndNameAreSentFirst) {
  backend = make("redis://me:secret@localhost/3");
  engine.advance(1h);
  EXPECT_EQ(server.dialled, 0) << "nothing connects before it is needed";
  EXPECT_TRUE(contend(false)->grant);
  const std::vector<Words> expected = {{"AUTH", "me", "secret"}, {"SELECT", "3"}, {"CLIENT", "SETNAME", "dlock:test"}};
  EXPECT_EQ(server.handshakes, expected);
  server.handshakes.clear();
  server.cut();
  engine.advance(100ms);
  EXPECT_EQ(server.handshakes, expected) << "again";
  EXPECT_EQ(host.connections, (std::vector{State::connected, State::reconnecting, State::connected}));
}

TEST_F(ConnectionTest, HandshakeRefused_FailsWithTheReason) {
  // Servers before 6.0 have words of their own for a wrong password.
  for (const auto& [verb, answer, code, words] :
       {std::tuple("AUTH", "-ERR Client sent AUTH, but no password is set\r\n", errc::access_denied,
                   "Client sent AUTH"),
        std::tuple("SELECT", ":1\r\n", errc::protocol, "the handshake"),
        std::tuple("SELECT", "-ERR something new\r\n", errc::unavailable, "something new")}) {
    answer_instead(verb, answer);
    backend = make("redis://me:secret@localhost/3");
    ASSERT_TRUE(failed(*contend(false), code, words));
  }
}

// Hazard: H21 eviction: a warning
TEST_F(ConnectionTest, Eviction_IsWarnedOfOnce) {
  answer_instead("INFO", bulk("# Memory\r\nmaxmemory:1000000\r\nmaxmemory_policy:allkeys-lru\r\n"));
  (void)contend(false);
  server.cut();
  engine.advance(100ms);
  ASSERT_EQ(host.warnings.size(), 1U);
  EXPECT_NE(host.warnings.front().reason.detail.find("allkeys-lru"), std::string::npos);
}

// A request that has to be sent again arrives behind those that were sent after it: a release behind the next acquire,
// for instance.
TEST_F(ConnectionTest, Script_IsSentWholeOnceOnEachConnection) {
  for (int i = 0; i < 3; ++i) {
    if (i == 2) server.cut();
    engine.advance(100ms);
    (void)take_another();
  }
  const auto calls = server.calls("acquire");
  ASSERT_EQ(calls.size(), 3U);
  EXPECT_EQ(calls[0].front(), "EVAL");
  EXPECT_EQ(calls[1].front(), "EVALSHA");
  EXPECT_EQ(calls[2].front(), "EVAL");
}

// A replica that takes writes grants what its master grants.
TEST_F(ConnectionTest, ServerIsNoMaster_GrantsNothing) {
  for (const std::string name : {"slave", "replica", "active-replica", "sentinel"}) {
    answer_instead("ROLE", role(name));
    server.commands.clear();
    backend = make();
    ASSERT_TRUE(failed(*contend(false), name == "sentinel" ? errc::unsupported : errc::unavailable,
                       name == "sentinel" ? "redis-sentinel://" : "not the master (role \"" + name + "\")"));
    EXPECT_TRUE(server.commands.empty()) << "nothing was asked of it";
    backend = make("redis://localhost?allow_replica=1");
    EXPECT_TRUE(take_another()->grant);
  }
}

TEST_F(ConnectionTest, SeveralAddresses_MasterIsFoundInOneAttempt) {
  server.addresses = 3;
  answer_by("ROLE",
            [this](FakeStream&, const Words&) -> std::string { return role(server.dialled < 3 ? "slave" : "master"); });
  EXPECT_TRUE(contend(false)->grant);
  EXPECT_EQ(server.dialled, 3);
  answer_instead("ROLE", role("slave"));
  backend = make();
  ASSERT_TRUE(failed(*contend(false), errc::unavailable));
  EXPECT_EQ(server.dialled, 6) << "each address once per attempt";
}

// Whichever command this user may run; with neither, a warning. A replica in a cluster is no server by itself.
TEST_F(ConnectionTest, RoleOrInfo_SaysTheRole) {
  struct Row {
    std::string role;
    std::string info;
    std::optional<errc> failure;
    std::size_t warnings = 0;
  };
  const std::string unknown = "-ERR unknown command 'ROLE', with args beginning with: \r\n";
  for (const Row& row : {
           Row{denied, bulk("role:master\r\n"), std::nullopt},
           Row{denied, bulk("role:slave\r\n"), errc::unavailable},
           Row{unknown, bulk("role:slave\r\n"), errc::unavailable},
           Row{role("master"), denied, std::nullopt},
           Row{denied, denied, std::nullopt, 1},
           Row{"+OK\r\n", "+OK\r\n", std::nullopt, 1},
           Row{role("slave"), bulk("# Cluster\r\ncluster_enabled:1\r\n"), errc::unsupported},
       }) {
    SCOPED_TRACE(row.role + row.info);
    host.warnings.clear();
    serve([&](FakeStream&, const Words& command) -> std::optional<std::string> {
      if (command.front() == "ROLE") return row.role;
      return command.front() == "INFO" ? std::optional(row.info) : std::nullopt;
    });
    backend = make();
    for (int i = 0; i < 2; ++i) {
      const auto attempt = take_another();
      EXPECT_EQ(attempt->grant.has_value(), !row.failure);
      EXPECT_TRUE(i > 0 || !row.failure || failed(*attempt, *row.failure));
      server.cut();
      engine.advance(100ms);
    }
    EXPECT_EQ(host.warnings.size(), row.warnings);
  }
}

// H16: whatever comes late must not be taken for the answer to a later request.
// Hazard: H15, H16 late answers: close the connection
TEST_F(ConnectionTest, NoAnswer_EndsTheConnection) {
  answer_instead("script", "");
  const auto attempt = contend(false);
  engine.advance(2s);
  ASSERT_TRUE(failed(*attempt, errc::ambiguous));
  engine.advance(100ms);
  EXPECT_EQ(server.connections.size(), 1U);
  EXPECT_EQ(server.dialled, 2);
}

// Hazard: H15, H16 late answers: close the connection
TEST_F(ConnectionTest, UnrequestedAnswer_EndsTheConnection) {
  (void)contend(false);
  server.connections.front()->reply("+surprise\r\n");
  engine.run();
  ASSERT_EQ(host.connections.back(), State::reconnecting);
}

TEST_F(ConnectionTest, ConnectionBreaks_SentIsAmbiguousUnsentUnavailable) {
  answer_instead("script", "");
  const auto sent = contend(false);
  server.takes_bytes = false;
  const auto unsent = contend(false);
  server.cut();
  engine.run();
  EXPECT_TRUE(failed(*sent, errc::ambiguous));
  EXPECT_TRUE(failed(*unsent, errc::unavailable));
}

TEST_F(ConnectionTest, SilentConnection_IsProbedAndLeft) {
  (void)contend(false);
  EXPECT_EQ(dialled_within(1min), 0) << "the server answers PING";
  server.takes_bytes = false;
  engine.advance(5s);
  EXPECT_EQ(host.connections.at(1), State::reconnecting);
}

// H11, H16: it is we who slept.
// Hazard: H11 a paused holder: a local timer
TEST_F(ConnectionTest, ProcessStopped_TakesAnswersThatCameMeanwhile) {
  answer_by("acquire", [this](FakeStream& from, const Words&) -> std::string {
    engine.manual_clock().advance(1min);
    from.arrive(bulk("7"));
    return "";
  });
  EXPECT_TRUE(contend(false, 24h)->grant);
  EXPECT_EQ(server.dialled, 1);
}

TEST_F(ConnectionTest, UnknownError_EndsATryButNotAWait) {
  for (const std::string strategy : {"queue", "broadcast", "poll"}) {
    answer_instead("acquire", "-ERR something new\r\n");
    backend = make("redis://localhost?strategy=" + strategy);
    ASSERT_TRUE(failed(*contend(false), errc::ambiguous, "something new"));
    const auto waiting = contend({.name = strategy});
    engine.advance(1min);
    EXPECT_FALSE(waiting->failure);
    serve();
    engine.advance(2s);
    EXPECT_TRUE(waiting->grant) << strategy;
  }
}

constexpr std::size_t crowd = 60;

// By the strategy and the error that the server answers with.
class RefusingServerTest : public BackendTest,
                           public testing::WithParamInterface<std::tuple<const char*, const char*>> {};

// Each waiter asks twice a second when it backs off by itself: a crowd would ask 4,500 times in a minute.
// Hazard: H25 the herd, costly waiting: one is woken, polls are rare
TEST_P(RefusingServerTest, Crowd_OneAsksAndAllAreServedOnceItWorks) {
  const auto [strategy, error] = GetParam();
  backend = make(std::string("redis://localhost?strategy=") + strategy);
  const auto attempts = contend_many(crowd);
  engine.advance(1s);
  answer_instead("script", error);
  std::size_t before = asked();
  EXPECT_LE(dialled_within(10s), 100) << "no storm when it begins";
  EXPECT_LE(asked() - before, 150U);
  before = asked();
  EXPECT_LE(dialled_within(1min), 300);
  EXPECT_LE(asked() - before, 300U);
  EXPECT_GE(asked() - before, 60U) << "no request finds out whether it is over";
  EXPECT_GT(attempts.front()->unreachable_reports.size(), 0U);
  for (const auto& each : attempts) free(each->request.name);
  serve();
  engine.advance(1500ms);
  for (const auto& each : attempts) EXPECT_TRUE(each->grant) << each->request.name;
}

INSTANTIATE_TEST_SUITE_P(
    , RefusingServerTest,
    testing::Combine(testing::Values("queue", "broadcast", "poll"),
                     // Of those that break the connection, and of those that do not.
                     testing::Values(read_only, loading,
                                     "-OOM command not allowed when used memory > 'maxmemory'.\r\n")),
    [](const auto& combination) {
      const std::string error = std::get<1>(combination.param);
      return std::string(std::get<0>(combination.param)) + "_" + error.substr(1, error.find(' ') - 1);
    });

TEST_F(OutageTest, SubscriptionsRefusedOrBroken_AreRepeatedRarely) {
  hold();
  for (const bool breaks : {false, true}) {
    std::size_t subscriptions = 0;
    answer_by("SUBSCRIBE", [&](FakeStream& from, const Words& command) -> std::string {
      ++subscriptions;
      if (!breaks) return "-ERR not here\r\n";
      from.reply(about_channel("subscribe", command[1]));
      from.close({errc::unavailable, "closed"});
      return "";
    });
    backend = make();
    const auto attempt = contend(true);
    EXPECT_LE(dialled_within(1min), 150);
    EXPECT_LE(subscriptions, 150U);
    EXPECT_GE(subscriptions, 30U);
  }
}

// Contract: a holder's renewals are retried quickly, whatever waiters do.
TEST_F(OutageTest, WaitersBackOff_HolderStillRenews) {
  const auto holder = contend(false, 1min);
  const auto attempts = contend_many(crowd);
  answer_instead("script", read_only);
  engine.advance(10s);
  for (int i = 0; i < 5; ++i) {
    const auto before = server.calls("renew").size();
    EXPECT_TRUE(renew(*holder, 60ms));
    EXPECT_EQ(server.calls("renew").size(), before + 1) << "it was not sent";
  }
  answer_instead("acquire", read_only);
  EXPECT_EQ(renew(*holder, 60ms), RenewOutcome::Status::renewed);
}

TEST_F(OutageTest, WaitersBackOff_TryIsStillSent) {
  answer_instead("script", loading);
  const auto waiting = contend(true);
  engine.advance(1min);
  serve();
  EXPECT_TRUE(take_another()->grant);
  EXPECT_TRUE(waiting->grant) << "its success is news for those who wait";
}

}  // namespace
}  // namespace dlock::redis
