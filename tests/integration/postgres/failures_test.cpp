// Processes of the server that are killed, rows that are lost, standbys that are promoted, servers that have no
// connections left, clients with fewer connections than threads that nest locks.
#include <gmock/gmock.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "postgres/postgres_test.hpp"

namespace dlock::test {

namespace {

// By default its commits do not wait for the disk, and what they wrote stays in memory for long.
class LazyServerTest : public PostgresStrategyTest {
 protected:
  LazyServerTest()
      : PostgresStrategyTest(
            {.lines = {"synchronous_commit = off", "wal_writer_delay = 10s", "wal_writer_flush_after = 0"}}) {}

  [[nodiscard]] std::string count(const std::string& condition) {
    return server.value("SELECT count(*) FROM " + token_table(GetParam()) + " WHERE " + condition);
  }
};
INSTANTIATE_TEST_SUITE_P(, LazyServerTest, testing::ValuesIn(tested()), strategy_name);

// Shows: growing-tokens, hole postgresql-lazy-durability
// Hazard: `nextval()` as token repeats after a crash
TEST_P(LazyServerTest, Crash_KeepsDurableGrantsAndGrowingTokens) {
  for (const std::string durability : {"sync", "async", "unlogged"}) {
    SCOPED_TRACE(durability);
    server.run("DROP SCHEMA IF EXISTS dlock CASCADE");
    Contender ours(steady(impatient(short_lease), "durability=" + durability), "counted");
    EXPECT_TRUE(take(ours.lock).release());
    server.run("CHECKPOINT");  // what went before is on disk
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(take(ours.lock).release());
    Lease lease = take(ours.lock);
    const LossEvent loss(lease);
    server.kill();
    server.start();
    if (durability == "unlogged") {
      EXPECT_EQ(count("token <= " + std::to_string(lease.token().value())), "0") << "this durability is to forget";
    } else if (durability == "sync" && !in_session()) {
      EXPECT_EQ(count("owner IS NOT NULL AND token = " + std::to_string(lease.token().value())), "1");
    }
    // A holder that was forgotten goes on holding until its lease ends; the next one has the greater token.
    if (durability != "unlogged") {
      std::error_code error;
      (void)lease.release(error);
    }
    Contender other(steady(patient(), "durability=" + durability), "counted");
    EXPECT_GT(take(other.lock).token(), lease.token());
    if (durability == "unlogged") loss.event().wait("a holder that was forgotten is not told");
  }
}

class TokensTest : public PostgresStrategyTest {};
INSTANTIATE_TEST_SUITE_P(, TokensTest, testing::ValuesIn(tested()), strategy_name);

// Shows: growing-tokens
// Hazard: tokens start again with a deleted row
TEST_P(TokensTest, LostRows_AreFollowedByGreaterTokens) {
  Contender ours(steady(), "counted");
  FencingToken last;
  for (const std::string& loss :
       {std::string(), "DELETE FROM " + token_table(GetParam()), "UPDATE " + token_table(GetParam()) + " SET token = 1",
        std::string("TRUNCATE dlock.lease, dlock.optimistic, dlock.row_lock, dlock.row_token, dlock.fence"),
        std::string("DROP SCHEMA dlock CASCADE")}) {
    if (!loss.empty()) server.run(loss);
    Lease lease = take(ours.lock);
    EXPECT_GT(lease.token(), last) << loss;
    last = lease.token();
    EXPECT_TRUE(lease.release());
  }
}

// Shows: growing-tokens
TEST_P(TokensTest, ClockBehindTheLastToken_AddsOne) {
  const Client client = steady();
  std::vector<DistributedLock> locks;
  for (const char* const name : {"a", "b", "c"}) locks.push_back(client.make_lock(name));
  for (DistributedLock& lock : locks) EXPECT_TRUE(take(lock).release());
  server.run("UPDATE " + token_table(GetParam()) + " SET token = 9000000000000000000");
  std::vector<Pending> all;
  for (DistributedLock& lock : locks) all.emplace_back(lock, AcquireOptions{});  // the first alone, the others together
  for (Pending& each : all) EXPECT_EQ(each.lease().token().value(), 9'000'000'000'000'000'001U);
}

class StandbyTest : public PostgresStrategyTest {
 protected:
  StandbyTest() : PostgresStrategyTest(Own{}) {}

  // The primary is `server`.
  PostgresServer standby{{.primary = &server}};

  // A standby keeps no locks. It is asked again until the time of a try is over, and then a request may be open. A busy
  // machine may not even be connected by then.
  static void expect_refused(DistributedLock& lock) {
    await("the client does not say that it asks a standby", [&] {
      const Failure failure = failure_of([&] { (void)lock.try_acquire(); });
      EXPECT_TRUE(failure.code == errc::unavailable || failure.code == errc::ambiguous) << failure.detail;
      return failure.detail.find("standby") != std::string::npos;
    });
  }
  // On a busy machine, its time may be over before the server answers.
  static void expect_diagnosed(const Client& client) {
    await("the diagnosis does not mention the standby",
          [&] { return mentions(client.diagnose(), Finding::Severity::error, "standby"); });
  }
  // Whichever of them is the primary.
  [[nodiscard]] std::string either() const {
    return std::string("postgresql://") + PostgresServer::user + ":" + PostgresServer::password +
           "@127.0.0.1:" + std::to_string(standby.port()) + ",127.0.0.1:" + std::to_string(server.port()) + "/" +
           PostgresServer::database + "?" + strategy();
  }
};
INSTANTIATE_TEST_SUITE_P(, StandbyTest, testing::ValuesIn(tested()), strategy_name);

TEST_P(StandbyTest, WaitAtAStandby_EndsWithItsPromotion) {
  Contender primary(steady(impatient()), "replicated");
  const FencingToken before = take(primary.lock).token();
  server.await_standby();
  Contender first(connect_patiently(standby.url(strategy()), impatient()), "replicated");
  Contender second(connect_patiently(standby.url(strategy("target_session_attrs=any")), impatient()), "replicated/too");
  Pending waiting(first.lock, {});
  Pending waiting_too(second.lock, {});
  expect_refused(first.lock);
  expect_refused(second.lock);
  expect_diagnosed(first.client);
  expect_diagnosed(second.client);
  EXPECT_FALSE(waiting.done());
  server.kill();
  standby.promote();
  EXPECT_GT(waiting.lease().token(), before);
  EXPECT_TRUE(waiting_too.lease().release());
}

// Shows: hole postgresql-failover
TEST_P(StandbyTest, Promotion_IsFollowedByTheClient) {
  Contender ours(connect_patiently(either(), {.lease = 18s}), "replicated");
  Lease lease = take(ours.lock);
  server.await_standby();
  const LossEvent loss(lease);
  server.kill();
  standby.promote();
  if (in_session()) {
    loss.event().wait("the loss is not signalled");
    std::error_code error;
    EXPECT_FALSE(lease.release(error));
  } else {
    // The row was replicated, and the lease is renewed at the new primary.
    await_renewal(lease);
    EXPECT_TRUE(lease.held());
    EXPECT_TRUE(lease.release());
  }
  EXPECT_GT(take(ours.lock).token(), lease.token());
}

// Shows: growing-tokens, hole postgresql-failover
TEST_P(StandbyTest, LostReplication_IsFollowedByGreaterTokens) {
  Contender own(connect_patiently(either(), impatient(short_lease)), "replicated");
  EXPECT_TRUE(take(own.lock).release());
  server.await_standby();
  standby.stop();
  FencingToken last;
  for (int i = 0; i < 20; ++i) last = take(own.lock).token();
  server.kill();
  standby.start();
  standby.promote();
  EXPECT_GT(take(own.lock).token(), last);
}

class FullServerTest : public PostgresStrategyTest {
 protected:
  // Three of them are the superuser's.
  FullServerTest() : PostgresStrategyTest({.max_connections = 8}) {
    server.await("NOT EXISTS (SELECT FROM pg_stat_activity WHERE usename = 'locker')");  // those of the test before
  }

  // Until no connection is left.
  void fill() {
    try {
      for (int i = 0; i < 5; ++i) others.push_back(std::make_unique<PostgresConnection>(server.url()));
    } catch (const std::runtime_error&) {
    }
  }

  std::vector<std::unique_ptr<PostgresConnection>> others;
};
INSTANTIATE_TEST_SUITE_P(, FullServerTest, testing::ValuesIn(tested()), strategy_name);

// Hazard: a server without connections left
TEST_P(FullServerTest, HolderRenews_TryIsUnavailableAndWaitOutlastsIt) {
  Contender holder(steady({.lease = 12s}), "held");
  Lease lease = take(holder.lock);
  fill();
  Contender ours(steady(impatient()), "full");
  Pending waiting(ours.lock, {});
  expect_failure(errc::unavailable, "53300", [&] { (void)ours.lock.try_acquire(); });
  await_renewal(lease);
  EXPECT_TRUE(lease.held());
  EXPECT_TRUE(lease.release());
  EXPECT_FALSE(waiting.done());
  others.clear();
  EXPECT_TRUE(waiting.lease().release());
}

class NestedTest : public PostgresStrategyTest {};
INSTANTIATE_TEST_SUITE_P(, NestedTest, testing::ValuesIn(tested(session_strategies)), strategy_name);

// Hazard: a server without connections left, and locks within locks
TEST_P(NestedTest, MoreThreadsThanConnections_FinishTheirRounds) {
  constexpr int threads = 6;
  constexpr int rounds = 3;
  const Client clients[] = {steady(patient(), "max_connections=4"), steady(patient(), "max_connections=4")};
  std::atomic<int> held = 0;
  {
    std::vector<std::jthread> running;
    for (int i = 0; i < 2 * threads; ++i) {
      running.emplace_back([&held, &client = clients[i % 2]] {
        for (int round = 0; round < rounds; ++round) {
          std::vector<Lease> leases;
          for (const char* const name : {"outer", "middle", "inner"}) {
            std::error_code error;
            leases.push_back(client.make_lock(name).acquire({.wait = conformance::guard()}, error));
            EXPECT_FALSE(error) << name << ": " << error.message();
          }
          if (leases.front().held()) ++held;
          while (!leases.empty()) leases.pop_back();  // the inner ones first
        }
      });
    }
  }
  EXPECT_EQ(held, 2 * threads * rounds);
}

}  // namespace

}  // namespace dlock::test
