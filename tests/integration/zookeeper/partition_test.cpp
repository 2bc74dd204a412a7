// The network between us and the servers is gone for longer than the session timeout.
#include <atomic>

#include "zookeeper/zookeeper_test.hpp"

namespace dlock::test {

namespace {

constexpr int rounds = 5;

class PartitionTest : public ZooKeeperStrategyTest {};

// Nothing says that the network is gone: bytes just do not arrive.
TEST_P(PartitionTest, TheLossIsSeenBeforeTheServerLetsAnybodyElseIn) {
  const Client client = disturbed({}, "session_timeout=1s");
  const Client other_client = steady();
  DistributedLock lock = client.lock("partition");
  DistributedLock others = other_client.lock("partition");
  FencingToken last;
  for (int round = 0; round < rounds; ++round) {
    const Lease lease = take(lock);
    EXPECT_GT(lease.token(), last);
    std::atomic<bool> overlap{false};
    Pending waiting(others, {}, [&](Lease& /*granted*/) { overlap = lease.held() || !lease.lost().stop_requested(); });
    await_residue("partition", std::string(GetParam()) == "ephemeral" ? 1 : 2);
    proxy.set({.mode = rig::Traffic::Mode::swallow});
    Lease next = waiting.lease();
    EXPECT_FALSE(overlap);
    EXPECT_FALSE(lease.held());
    EXPECT_GT(next.token(), lease.token());
    last = next.token();
    proxy.drop();
    proxy.pass();
    EXPECT_TRUE(next.release());
  }
}

TEST_P(PartitionTest, AWaiterOfALostSessionGetsTheLockInANewOne) {
  const Client client = disturbed({}, short_session);
  const Client other_client = steady();
  DistributedLock lock = client.lock("partition");
  DistributedLock others = other_client.lock("partition");
  std::optional<Lease> lease = take(others);
  Pending waiting(lock, {});
  if (std::string(GetParam()) != "ephemeral") await_residue("partition", 2);
  cut();
  await_residue("partition", 1);
  heal();
  lease.reset();
  Lease granted = waiting.lease();
  EXPECT_TRUE(granted.held());
  EXPECT_TRUE(granted.release());
  await_no_residue("partition");
}

TEST_P(PartitionTest, AnExpiredSessionIsReplacedAndItsLeasesStayLost) {
  const auto log = std::make_shared<EventLog>();
  const Client client = disturbed({.observer = log}, short_session);
  DistributedLock lock = client.lock("expired");
  DistributedLock another = client.lock("another");
  Lease first = take(lock);
  Lease second = take(another);
  const auto before = holder("expired").value().owner;
  cut();
  log->losses.wait("the end of a session is not told to all leases", 2);
  await_no_residue("expired");
  heal();
  const Lease later = take(lock);
  EXPECT_TRUE(later.held());
  EXPECT_GT(later.token(), first.token());
  EXPECT_NE(holder("expired").value().owner, before);
  EXPECT_FALSE(first.held());
  EXPECT_FALSE(first.release());
  EXPECT_FALSE(second.release());
  EXPECT_TRUE(later.held());
}

TEST_P(PartitionTest, AShortOneCostsNobodyTheLock) {
  const auto log = std::make_shared<EventLog>();
  const Client client = disturbed({.observer = log});
  DistributedLock lock = client.lock("short");
  Lease lease = take(lock);
  for (std::size_t times = 1; times <= 3; ++times) {
    const auto connected = log->connected.count();
    cut();
    log->reconnecting.wait("the cut is not told", times);
    EXPECT_TRUE(lease.held()) << "suspended is not lost";
    heal();
    log->connected.wait("the connection does not come back", connected + 1);
  }
  EXPECT_FALSE(log->losses.happened());
  EXPECT_TRUE(lease.release());
}

INSTANTIATE_TEST_SUITE_P(, PartitionTest, all_strategies(), strategy_name);

}  // namespace

}  // namespace dlock::test
