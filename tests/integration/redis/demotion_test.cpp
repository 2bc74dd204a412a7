// A master that becomes a replica while clients are connected to it, as in a planned failover.
#include <deque>

#include "redis/redis_test.hpp"

namespace dlock::test {

namespace {

// Where the proxy leads is what a name or a virtual address leads to: new connections lead to the promoted server, and
// those that stand stay.
void fail_over(RedisServer& from, RedisServer& to, rig::TcpProxy& proxy) {
  await("the replica does not connect", [&] { return to.info("replication", "master_link_status") == "up"; });
  await("the replica does not acknowledge", [&] { return from.replicated_to(1); });
  (void)to.command({"REPLICAOF", "NO", "ONE"});
  (void)from.command({"REPLICAOF", "127.0.0.1", std::to_string(to.port())});
  proxy.retarget(rig::Endpoint::loopback(to.port()));
}

std::size_t subscriptions_at(RedisServer& server) {
  return server.command({"PUBSUB", "CHANNELS", "dlock:w:*"}).elements.size();
}

class DemotionTest : public RedisTest {
 protected:
  // How many waiters the promoted server knows, and knows to be heard.
  [[nodiscard]] std::int64_t waiters_at(RedisServer& to) { return to.command({"ZCARD", keys("handed").queue}).integer; }
  [[nodiscard]] std::int64_t heard_at(RedisServer& to) {
    return to.command({"ZCOUNT", keys("handed").alive, "(0", "+inf"}).integer;
  }

  RedisServer promoted{{.primary = server.port()}};
};

TEST_F(DemotionTest, WaitersAreHeardWhereTheirCommandsGo) {
  const Client holding = disturbed();
  const Client client = disturbed();
  DistributedLock lock = holding.make_lock("handed");
  DistributedLock others = client.make_lock("handed");
  const Lease lease = take(lock, {.lease = long_lease, .renew = false});
  Pending waiting(others, {});
  await("the waiter does not subscribe", [&] { return subscriptions_at(server) == 1; });
  fail_over(server, promoted, proxy);
  await("the subscriber stays with the old master",
        [&] { return subscriptions_at(promoted) == 1 && subscriptions_at(server) == 0; });
}

TEST_F(DemotionTest, WaitersAreServedInTheirTurnByTheNewMaster) {
  const Client moved = disturbed();
  DistributedLock moved_lock = moved.make_lock("handed");
  {
    const Lease lease = take(moved_lock);
    Pending waiting(moved_lock, {});
    await("the waiter does not subscribe", [&] { return subscriptions_at(server) == 1; });
  }
  fail_over(server, promoted, proxy);
  const Client settled = connect_patiently(promoted.url());
  DistributedLock settled_lock = settled.make_lock("handed");
  for (int i = 0; i < 10; ++i) {
    Lease lease = take(settled_lock);
    Pending first(moved_lock, {});
    await("the first waiter does not come", [&] { return waiters_at(promoted) == 1 && heard_at(promoted) == 1; });
    Pending second(settled_lock, {});
    await("the second waiter does not come", [&] { return waiters_at(promoted) == 2 && heard_at(promoted) == 2; });
    EXPECT_TRUE(lease.release());
    Lease earlier = first.lease();
    const FencingToken token = earlier.token();
    EXPECT_TRUE(earlier.release());
    EXPECT_LT(token, second.lease().token()) << "it was passed over";
  }
}

class DemotedMasterTest : public RedisStrategyTest {};

TEST_P(DemotedMasterTest, AHolderAndAWaiterGoOnAtTheNewOne) {
  RedisServer promoted({.primary = server.port()});
  const auto log = std::make_shared<EventLog>();
  const Client client = disturbed({.observer = log}, strategy());
  DistributedLock held = client.make_lock("held");
  const Lease kept = take(held, {.lease = 15s});
  DistributedLock waited_for = client.make_lock("waited-for");
  (void)server.command({"SET", keys("waited-for").lock, "somebody's"});
  Pending waiting(waited_for, {});
  EXPECT_FALSE(waited_for.try_acquire().has_value());
  fail_over(server, promoted, proxy);
  // Whoever writes finds out first.
  DistributedLock another = client.make_lock("another");
  std::error_code error;
  await("nobody finds the new master", [&] { return another.try_acquire({}, error).has_value(); });
  await_renewals(*log, 1);
  (void)promoted.command({"DEL", keys("waited-for").lock});
  EXPECT_TRUE(waiting.lease().held());
  EXPECT_TRUE(kept.held());
  EXPECT_EQ(log->losses.count(), 0U);
}

TEST_P(DemotedMasterTest, IsNotStormedByACrowdOfWaiters) {
  constexpr int crowd = 199;
  const Client client = steady({}, strategy());
  std::deque<DistributedLock> locks;
  std::deque<Pending> waiting;
  for (int i = 0; i < crowd; ++i) {
    const std::string name = "stormed/" + std::to_string(i);
    (void)server.command({"SET", keys(name).lock, "somebody's"});
    waiting.emplace_back(locks.emplace_back(client.make_lock(name)), AcquireOptions{.lease = long_lease});
  }
  EXPECT_FALSE(locks.back().try_acquire().has_value());
  server.reset_counts();
  // At once: while another client holds a lock, a replica says so, and who polls is not in trouble. Then all of them
  // want to write.
  RedisConnection demoting = server.connect();
  (void)demoting.command({"MULTI"});
  for (int i = 0; i < crowd; ++i) {
    (void)demoting.command({"PEXPIRE", keys("stormed/" + std::to_string(i)).lock, "1"});
  }
  (void)demoting.command({"REPLICAOF", "127.0.0.1", "1"});  // where nobody is
  ASSERT_EQ(demoting.command({"EXEC"}).elements.size(), crowd + 1U);
  EXPECT_FALSE(waiting.front().event().wait_for(5s));
  // One waiter asks in place of all; before that, those may ask twice that have just come.
  const auto calls = server.calls_of({"eval", "evalsha"});
  const auto connections = std::stoll(server.info("stats", "total_connections_received"));
  RecordProperty("calls", static_cast<int>(calls));
  RecordProperty("connections", static_cast<int>(connections));
  EXPECT_LE(calls, 1000);
  EXPECT_LE(connections, 100);
  (void)server.command({"REPLICAOF", "NO", "ONE"});
  for (Pending& each : waiting) EXPECT_TRUE(each.lease().held());
}

INSTANTIATE_TEST_SUITE_P(, DemotedMasterTest, all_strategies(), Room::strategy_name);

}  // namespace

}  // namespace dlock::test
