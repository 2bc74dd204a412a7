// A server of which one process dies, and one whose memory is lost.
#include <signal.h>

#include <stdexcept>

#include "postgres/postgres_test.hpp"

namespace dlock::test {

namespace {

class SessionCrashTest : public PostgresStrategyTest {};

// One process of the server that is killed makes it end all sessions and recover; it stays the same server.
TEST_P(SessionCrashTest, ACrashOfOneSessionIsOneOfAllSessions) {
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
  const Client other = steady(patient());
  DistributedLock others = other.make_lock("held");
  EXPECT_GT(take(others).token(), lease.token());
}

INSTANTIATE_TEST_SUITE_P(, SessionCrashTest, testing::ValuesIn(tested()), strategy_name);

// Its commits do not wait for the disk, and what they wrote stays in memory for long.
class LazyServerTest : public PostgresStrategyTest {
 protected:
  LazyServerTest()
      : PostgresStrategyTest(
            {.lines = {"synchronous_commit = off", "wal_writer_delay = 10s", "wal_writer_flush_after = 0"}}) {}
};

TEST_P(LazyServerTest, ACrashForgetsNoGrant) {
  const Client client = steady({.lease = 10min});
  DistributedLock first = client.make_lock("first");
  EXPECT_TRUE(take(first).release());
  server.run("CHECKPOINT");  // what went before is on disk
  DistributedLock lock = client.make_lock("held");
  const Lease lease = take(lock);
  server.kill();
  server.start();
  const std::string table = GetParam() == Strategy::table ? "dlock.lease" : "dlock.optimistic";
  EXPECT_EQ(server.value("SELECT count(*) FROM " + table + " WHERE name = 'held' AND owner IS NOT NULL"), "1");
}

INSTANTIATE_TEST_SUITE_P(, LazyServerTest, ::testing::ValuesIn(tested({Strategy::table, Strategy::optimistic})),
                         strategy_name);

}  // namespace

}  // namespace dlock::test
