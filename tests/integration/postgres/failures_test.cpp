// Sessions that are ended, processes of the server that are killed, rows that are lost, standbys that are promoted.
#include <gmock/gmock.h>
#include <signal.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "postgres/postgres_test.hpp"

namespace dlock::test {

namespace {

// --- pg_terminate_backend() of every connection of a client ----------------------------------------------------------

class TerminatedTest : public PostgresStrategyTest {
 protected:
  TerminatedTest() { make_role("doomed"); }
};
INSTANTIATE_TEST_SUITE_P(, TerminatedTest, testing::ValuesIn(tested()), strategy_name);

TEST_P(TerminatedTest, Holder_IsNotifiedOfTheLossOrKeepsTheLock) {
  const Client holder = as("doomed", {.lease = in_session() ? Duration(10min) : Duration(9s)});
  const Client other = steady();
  DistributedLock lock = holder.make_lock("held");
  DistributedLock others = other.make_lock("held");
  Lease lease = take(lock);
  const LossEvent loss(lease);
  Pending waiting(others, {});
  await_waiter("held");
  EXPECT_NE(server.value(PostgresLock(GetParam(), "held").residue()), "0");
  EXPECT_GE(terminate("doomed"), 1);
  if (in_session()) {
    loss.event().wait("the loss is not signalled");
  } else {
    await_renewal(lease);
    EXPECT_FALSE(waiting.done());
  }
  EXPECT_EQ(lease.held(), !in_session());
  EXPECT_EQ(lease.release(), !in_session());
  EXPECT_GT(waiting.lease().token(), lease.token());
  await_no_residue("held");
}

TEST_P(TerminatedTest, Sessions_LoseAllTheirLocksAndNoOther) {
  const Client holder = as("doomed", patient());
  const Client other = steady();
  std::vector<DistributedLock> locks;
  std::vector<Lease> leases;
  for (int i = 0; i < 5; ++i) {
    locks.push_back(holder.make_lock("held/" + std::to_string(i)));
    leases.push_back(take(locks.back()));
  }
  DistributedLock unrelated = other.make_lock("unrelated");
  const Lease kept = take(unrelated);
  EXPECT_GE(terminate("doomed"), 1);
  for (const Lease& lease : leases) {
    if (in_session()) LossEvent(lease).event().wait("a lock of the session is not lost");
    EXPECT_EQ(lease.held(), !in_session());
  }
  EXPECT_TRUE(kept.held());
}

TEST_P(TerminatedTest, Waiter_KeepsWaiting) {
  const Client holder = steady();
  const Client other = as("doomed", patient());
  DistributedLock lock = holder.make_lock("waited-for");
  DistributedLock others = other.make_lock("waited-for");
  Lease lease = take(lock);
  Pending waiting(others, {});
  for (int i = 0; i < 3; ++i) {
    await_waiter("waited-for");
    await_in_server("EXISTS (SELECT FROM pg_stat_activity WHERE usename = 'doomed')");
    EXPECT_GE(terminate("doomed"), 1);
  }
  EXPECT_FALSE(waiting.done());
  EXPECT_TRUE(lease.release());
  Lease next = waiting.lease();
  EXPECT_GT(next.token(), lease.token());
  EXPECT_TRUE(next.release());
  await_no_residue("waited-for");
}

TEST_P(TerminatedTest, ClientWithoutLocks_ReconnectsWithoutErrors) {
  const Client client = as("doomed", patient());
  DistributedLock lock = client.make_lock("free");
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(take(lock).release());
    EXPECT_GE(terminate("doomed"), 1);
  }
  EXPECT_TRUE(take(lock).release());
  EXPECT_EQ(client.stats().failed, 0U);
}

// --- Crashes ---------------------------------------------------------------------------------------------------------

class SessionCrashTest : public PostgresStrategyTest {};
INSTANTIATE_TEST_SUITE_P(, SessionCrashTest, testing::ValuesIn(tested()), strategy_name);

// One process of the server that is killed makes it end all sessions and recover; it stays the same server.
TEST_P(SessionCrashTest, KilledProcess_EndsAllSessions) {
  const Client client = steady({.lease = in_session() ? Duration(10min) : Duration(18s)});
  DistributedLock lock = client.make_lock("held");
  Lease lease = take(lock);
  const LossEvent loss(lease);
  PostgresConnection victim(server.url());
  ASSERT_EQ(::kill(victim.backend_pid(), SIGKILL), 0);
  EXPECT_THROW((void)victim.query("SELECT 1"), std::runtime_error);
  if (in_session()) loss.event().wait("the loss is not signalled");
  EXPECT_EQ(lease.held(), !in_session());
  std::error_code error;
  (void)lease.release(error);
  const Client other = steady();
  DistributedLock others = other.make_lock("held");
  EXPECT_GT(take(others).token(), lease.token());
}

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

TEST_P(LazyServerTest, Crash_KeepsDurableGrantsAndGrowingTokens) {
  for (const std::string durability : {"sync", "async", "unlogged"}) {
    SCOPED_TRACE(durability);
    server.run("DROP SCHEMA IF EXISTS dlock CASCADE");
    const Client client = steady(impatient(short_lease), "durability=" + durability);
    DistributedLock lock = client.make_lock("counted");
    EXPECT_TRUE(take(lock).release());
    server.run("CHECKPOINT");  // what went before is on disk
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(take(lock).release());
    Lease lease = take(lock);
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
    const Client other = steady(patient(), "durability=" + durability);
    DistributedLock others = other.make_lock("counted");
    EXPECT_GT(take(others).token(), lease.token());
    if (durability == "unlogged") loss.event().wait("a holder that was forgotten is not told");
  }
}

// --- Lost rows -------------------------------------------------------------------------------------------------------

class TokensTest : public PostgresStrategyTest {
 protected:
  TokensTest() : PostgresStrategyTest(Shared{}) {}
};
INSTANTIATE_TEST_SUITE_P(, TokensTest, testing::ValuesIn(tested()), strategy_name);

TEST_P(TokensTest, LostRows_AreFollowedByGreaterTokens) {
  const Client client = steady();
  DistributedLock lock = client.make_lock("counted");
  FencingToken last;
  for (const std::string& loss :
       {std::string(), "DELETE FROM " + token_table(GetParam()), "UPDATE " + token_table(GetParam()) + " SET token = 1",
        std::string("TRUNCATE dlock.lease, dlock.optimistic, dlock.row_lock, dlock.row_token, dlock.fence"),
        std::string("DROP SCHEMA dlock CASCADE")}) {
    if (!loss.empty()) server.run(loss);
    Lease lease = take(lock);
    EXPECT_GT(lease.token(), last) << loss;
    last = lease.token();
    EXPECT_TRUE(lease.release());
  }
}

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

// --- Standbys --------------------------------------------------------------------------------------------------------

class StandbyTest : public PostgresStrategyTest {
 protected:
  // The primary is `server`.
  PostgresServer standby{{.primary = &server}};

  // A standby keeps no locks. It is asked again until the time of a try is over, and then a request may be open.
  static void expect_refused(DistributedLock& lock) {
    const Failure failure = failure_of([&] { (void)lock.try_acquire(); });
    EXPECT_TRUE(failure.code == errc::unavailable || failure.code == errc::ambiguous) << failure.detail;
    EXPECT_THAT(failure.detail, testing::HasSubstr("standby"));
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
  const Client primary = steady(impatient());
  DistributedLock lock = primary.make_lock("replicated");
  const FencingToken before = take(lock).token();
  server.await_standby();
  const Client first = connect_patiently(standby.url(strategy()), impatient());
  const Client second = connect_patiently(standby.url(strategy("target_session_attrs=any")), impatient());
  DistributedLock one = first.make_lock("replicated");
  DistributedLock two = second.make_lock("replicated/too");
  Pending waiting(one, {});
  Pending waiting_too(two, {});
  expect_refused(one);
  expect_refused(two);
  EXPECT_TRUE(mentions(first.diagnose(), Finding::Severity::error, "standby"));
  EXPECT_TRUE(mentions(second.diagnose(), Finding::Severity::error, "standby"));
  EXPECT_FALSE(waiting.done());
  server.kill();
  standby.promote();
  EXPECT_GT(waiting.lease().token(), before);
  EXPECT_TRUE(waiting_too.lease().release());
}

TEST_P(StandbyTest, Promotion_IsFollowedByTheClient) {
  const Client client = connect_patiently(either(), {.lease = 18s});
  DistributedLock lock = client.make_lock("replicated");
  Lease lease = take(lock);
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
  EXPECT_GT(take(lock).token(), lease.token());
}

TEST_P(StandbyTest, LostReplication_IsFollowedByGreaterTokens) {
  const Client client = connect_patiently(either(), impatient(short_lease));
  DistributedLock lock = client.make_lock("replicated");
  EXPECT_TRUE(take(lock).release());
  server.await_standby();
  standby.stop();
  FencingToken last;
  for (int i = 0; i < 20; ++i) last = take(lock).token();
  server.kill();
  standby.start();
  standby.promote();
  EXPECT_GT(take(lock).token(), last);
}

}  // namespace

}  // namespace dlock::test
