// The network between us and the servers is gone for longer than the session timeout.
#include "zookeeper/zookeeper_test.hpp"

namespace dlock::test {

namespace {

class PartitionTest : public ZooKeeperStrategyTest {};

TEST_P(PartitionTest, SessionLost_WaiterGetsTheLockInTheNext) {
  const Client client = disturbed({}, short_session);
  const Client other_client = steady();
  DistributedLock lock = client.make_lock("partition");
  DistributedLock others = other_client.make_lock("partition");
  std::optional<Lease> lease = take(others);
  Pending waiting(lock, {});
  if (queued()) await_residue("partition", 2);
  cut();
  await_residue("partition", 1);
  heal();
  lease.reset();
  Lease granted = waiting.lease();
  EXPECT_TRUE(granted.held());
  EXPECT_TRUE(granted.release());
  await_no_residue("partition");
}

// By the client's own clock the outage lasts an hour, and afterwards hardly any time passes: the lock is valid from its
// first moment, not only when heartbeats have been answered for a quarter of the session timeout.
TEST_P(PartitionTest, LongOutage_WaiterHoldsTheLockAtOnce) {
  const auto clock = std::make_shared<ManualClock>();
  const auto log = std::make_shared<EventLog>();
  const Client client = disturbed({.observer = log, .clock = clock}, "session_timeout=60s");
  DistributedLock before = client.make_lock("before");
  const Lease lost = take(before);
  cut();
  server.stop();
  log->reconnecting.wait("the cut is not told");
  clock->advance(1h);
  log->losses.wait("the loss is not told");
  DistributedLock lock = client.make_lock("after");
  Pending waiting(lock, {});
  clock->advance(10s);  // the pause before a session that was lost is made anew
  {
    Pending behind_it(before, {});  // what was due has been done before this
    behind_it.cancel();
    EXPECT_EQ(behind_it.get().error, errc::cancelled);
  }
  clock->advance(1h);
  server.start();
  heal();
  // Pauses between attempts, if there are any, end.
  for (int i = 0; i < 5 && !waiting.event().wait_for(2s); ++i) clock->advance(1s);
  EXPECT_TRUE(waiting.lease().held());
}

INSTANTIATE_TEST_SUITE_P(, PartitionTest, all_strategies(), Room::strategy_name);

}  // namespace

}  // namespace dlock::test
