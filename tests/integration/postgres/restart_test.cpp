// A server that dies, by SIGKILL of all its processes or in good order, and comes back.
#include <signal.h>

#include <stdexcept>

#include "postgres/postgres_test.hpp"

namespace dlock::test {

namespace {

class RestartTest : public PostgresStrategyTest {
 protected:
  void expect_holder_told_or_kept(void (PostgresServer::*end)()) {
    const Client client = steady({.lease = in_session() ? Duration(10min) : Duration(6s)});
    DistributedLock lock = client.lock("held");
    Lease lease = take(lock);
    const LossEvent loss(lease);
    (server.*end)();
    // Nobody else can have the lock before the server is back.
    if (in_session()) loss.event().wait("the loss is not signalled");
    server.start();
    if (in_session()) {
      EXPECT_FALSE(lease.held());
      EXPECT_FALSE(lease.release());
      EXPECT_GT(take(lock).token(), lease.token());
    } else {
      await_renewal(lease);
      EXPECT_TRUE(lease.held());
      EXPECT_FALSE(loss.happened());
      EXPECT_TRUE(lease.release());
    }
    await_no_residue("held");
  }

  void expect_waiter_served(void (PostgresServer::*end)()) {
    const Client holder = steady(patient());
    const Client other = steady(patient());
    DistributedLock lock = holder.lock("waited-for");
    DistributedLock others = other.lock("waited-for");
    Lease lease = take(lock);
    Pending waiting(others, {});
    await_waiter("waited-for");
    (server.*end)();
    server.start();
    if (!in_session()) {
      EXPECT_FALSE(waiting.done());
      std::error_code error;
      (void)lease.release(error);  // may be too early for its connection; the release is repeated then
    }
    Lease next = waiting.lease();
    EXPECT_FALSE(lease.held());
    EXPECT_GT(next.token(), lease.token());
    EXPECT_TRUE(next.release());
    await_no_residue("waited-for");
  }
};

TEST_P(RestartTest, AHolderIsToldOfACrashOrKeepsTheLock) {
  expect_holder_told_or_kept(&PostgresServer::kill);
}

TEST_P(RestartTest, AHolderIsToldOfAShutdownOrKeepsTheLock) {
  expect_holder_told_or_kept(&PostgresServer::stop);
}

TEST_P(RestartTest, AWaiterIsServedAfterACrash) {
  expect_waiter_served(&PostgresServer::kill);
}

TEST_P(RestartTest, AWaiterIsServedAfterAShutdown) {
  expect_waiter_served(&PostgresServer::stop);
}

TEST_P(RestartTest, AWaitOutlastsAServerThatIsDown) {
  server.stop();
  const Client client = steady(impatient());
  DistributedLock lock = client.lock("patient");
  Pending waiting(lock, {});
  std::error_code error;
  EXPECT_FALSE(lock.try_acquire({}, error).has_value());
  EXPECT_EQ(error, errc::unavailable);
  EXPECT_FALSE(waiting.done());
  server.start();
  EXPECT_TRUE(waiting.lease().held());
}

// One process of the server that is killed makes it end all sessions and recover; it stays the same server.
TEST_P(RestartTest, ACrashOfOneSessionIsOneOfAllSessions) {
  const Client client = steady({.lease = in_session() ? Duration(10min) : Duration(6s)});
  DistributedLock lock = client.lock("held");
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
  DistributedLock others = other.lock("held");
  EXPECT_GT(take(others).token(), lease.token());
}

INSTANTIATE_TEST_SUITE_P(, RestartTest, testing::ValuesIn(all_strategies), strategy_name);

// Its commits do not wait for the disk, and what they wrote stays in memory for long.
class LazyServerTest : public PostgresStrategyTest {
 protected:
  LazyServerTest()
      : PostgresStrategyTest(
            {.lines = {"synchronous_commit = off", "wal_writer_delay = 10s", "wal_writer_flush_after = 0"}}) {}
};

TEST_P(LazyServerTest, ACrashForgetsNoGrant) {
  const Client client = steady({.lease = 10min});
  DistributedLock first = client.lock("first");
  EXPECT_TRUE(take(first).release());
  server.run("CHECKPOINT");  // what went before is on disk
  DistributedLock lock = client.lock("held");
  const Lease lease = take(lock);
  server.kill();
  server.start();
  const std::string table = GetParam() == Strategy::table ? "dlock.lease" : "dlock.optimistic";
  EXPECT_EQ(server.value("SELECT count(*) FROM " + table + " WHERE name = 'held' AND owner IS NOT NULL"), "1");
}

INSTANTIATE_TEST_SUITE_P(, LazyServerTest, ::testing::Values(Strategy::table, Strategy::optimistic), strategy_name);

}  // namespace

}  // namespace dlock::test
