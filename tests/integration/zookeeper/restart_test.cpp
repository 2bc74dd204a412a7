// A server that goes and comes back.
#include "zookeeper/zookeeper_test.hpp"

namespace dlock::test {

namespace {

// Clients come back when the server serves. One that has a session and connects while it starts may be forgotten by it,
// with the connection open, and the client library waits two thirds of the session timeout for an answer before it
// tries again.
class RestartTest : public ZooKeeperStrategyTest {
 protected:
  void stop() {
    cut();
    server.stop();
  }
  void kill() {
    cut();
    server.kill();
  }
  void start() {
    server.start();
    heal();
  }
};

TEST_P(RestartTest, AHolderKeepsTheLock) {
  const Client client = disturbed();
  const Client other_client = disturbed();
  DistributedLock lock = client.lock("held");
  DistributedLock others = other_client.lock("held");
  Lease lease = take(lock);
  stop();
  EXPECT_TRUE(lease.held());
  start();
  EXPECT_FALSE(others.try_acquire().has_value());
  EXPECT_TRUE(lease.held());
  EXPECT_TRUE(lease.release());
}

TEST_P(RestartTest, AWaiterGetsTheLockThatIsReleasedMeanwhile) {
  const Client client = disturbed();
  const Client other_client = disturbed();
  DistributedLock lock = client.lock("waiting");
  DistributedLock others = other_client.lock("waiting");
  std::optional<Lease> lease = take(lock);
  Pending waiting(others, {});
  if (std::string(GetParam()) != "ephemeral") await_residue("waiting", 2);
  kill();
  lease.reset();
  start();
  EXPECT_TRUE(waiting.lease().held());
  await_no_residue("waiting");
}

TEST_P(RestartTest, AnAcquireThatBeganWithoutAServerIsServedWhenThereIsOne) {
  const Client client = disturbed();
  DistributedLock lock = client.lock("early");
  stop();
  std::error_code error;
  (void)lock.acquire({.wait = 300ms}, error);
  EXPECT_TRUE(error == errc::unavailable || error == errc::ambiguous) << error.message();
  Pending waiting(lock, {});
  start();
  EXPECT_TRUE(waiting.lease().held());
}

TEST_P(RestartTest, TokensGrow) {
  const Client client = disturbed();
  DistributedLock lock = client.lock("tokens");
  FencingToken last;
  for (int i = 0; i < 3; ++i) {
    const FencingToken token = take(lock).token();
    EXPECT_GT(token, last);
    last = token;
    kill();
    start();
  }
}

TEST_P(RestartTest, AServerThatIsAwayForLongerThanTheSessionIsALoss) {
  const Client client = steady({}, short_session);
  DistributedLock lock = client.lock("long");
  const Lease lease = take(lock);
  const LossEvent loss(lease);
  server.kill();
  loss.event().wait("the loss is not signalled");
  server.start();
  const Lease next = take(lock);
  EXPECT_TRUE(next.held());
  EXPECT_GT(next.token(), lease.token());
  EXPECT_FALSE(lease.held());
}

TEST_P(RestartTest, AServerThatStandsStillForLongerThanTheSessionIsALoss) {
  const Client client = steady({}, short_session);
  DistributedLock lock = client.lock("still");
  const Lease lease = take(lock);
  const LossEvent loss(lease);
  server.freeze();
  loss.event().wait("the loss is not signalled");
  EXPECT_FALSE(lease.held());
  server.thaw();
  EXPECT_GT(take(lock).token(), lease.token());
}

// By the client's own clock the outage lasts an hour, and afterwards hardly any time passes: the lock is valid from its
// first moment, not only when heartbeats have been answered for a quarter of the session timeout.
TEST_P(RestartTest, AfterAnOutageLongerThanTheSessionAWaiterHoldsTheLockAtOnce) {
  const auto clock = std::make_shared<ManualClock>();
  const auto log = std::make_shared<EventLog>();
  const Client client = disturbed({.observer = log, .clock = clock}, "session_timeout=60s");
  DistributedLock before = client.lock("before");
  const Lease lost = take(before);
  stop();
  log->reconnecting.wait("the cut is not told");
  clock->advance(1h);
  log->losses.wait("the loss is not told");
  DistributedLock lock = client.lock("after");
  Pending waiting(lock, {});
  clock->advance(10s);  // the pause before a session that was lost is made anew
  {
    Pending behind_it(before, {});  // what was due has been done before this
    behind_it.cancel();
    EXPECT_EQ(behind_it.get().error, errc::cancelled);
  }
  clock->advance(1h);
  start();
  // Pauses between attempts, if there are any, end.
  for (int i = 0; i < 5 && !waiting.event().wait_for(2s); ++i) clock->advance(1s);
  ASSERT_TRUE(waiting.done());
  EXPECT_TRUE(waiting.lease().held());
}

INSTANTIATE_TEST_SUITE_P(, RestartTest, all_strategies(), strategy_name);

}  // namespace

}  // namespace dlock::test
