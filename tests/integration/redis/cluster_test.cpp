// redis-cluster://: three masters, each with a replica, and what may happen to them.
#include <deque>
#include <set>

#include "redis/redis_test.hpp"
#include "tests/support/redis_cluster.hpp"

namespace dlock::test {

namespace {

using Severity = Finding::Severity;

class ClusterTest : public ::testing::Test {
 protected:
  explicit ClusterTest(const RedisClusterConfig& config = {}) : cluster(config) {}

  [[nodiscard]] Client client(const std::string& parameters = {}, ClientOptions options = {}) {
    return connect_patiently(cluster.url(parameters), std::move(options));
  }
  [[nodiscard]] static std::string key(const std::string& name) { return redis::keys_of("dlock:", name).lock; }
  [[nodiscard]] RedisServer& master_of(const std::string& name) { return cluster.master_of(key(name)); }
  [[nodiscard]] RedisServer& other_master(const std::string& name) { return cluster.other_master(key(name)); }
  [[nodiscard]] std::uint16_t slot_of(const std::string& name) { return cluster.slot_of(key(name)); }
  [[nodiscard]] static std::int64_t waiters(RedisServer& server, const std::string& name) {
    return server.command({"ZCARD", redis::keys_of("dlock:", name).queue}).integer;
  }
  static void await_waiters(RedisServer& server, const std::string& name, std::int64_t count) {
    await("waiters do not arrive at " + name, [&] { return waiters(server, name) == count; });
  }
  // A holder and a waiter of one lock, and what is done to the cluster. The holder keeps its lock, and the waiter is
  // served then.
  template <class Trouble>
  void expect_to_go_on(Trouble&& trouble, const std::string& parameters = {}) {
    const auto log = std::make_shared<EventLog>();
    const Client holding = client(parameters, {.lease = 12s, .observer = log});
    const Client waiting = client(parameters);
    DistributedLock held = holding.lock("held");
    DistributedLock wanted = waiting.lock("held");
    Lease lease = take(held);
    Pending next(wanted, {});
    await_waiters(master_of("held"), "held", 1);
    trouble();
    await_renewal(lease);
    await_waiters(master_of("held"), "held", 1);
    EXPECT_TRUE(lease.held());
    EXPECT_EQ(log->losses.count(), 0U);
    const FencingToken earlier = lease.token();
    EXPECT_TRUE(lease.release());
    EXPECT_GT(next.lease().token(), earlier);
  }

  RedisCluster cluster;
};

TEST_F(ClusterTest, EachLockIsWhereItsSlotIs) {
  const Client one = client();
  EXPECT_EQ(one.capabilities().backend, "redis-cluster");
  std::set<RedisServer*> used;
  std::deque<Lease> leases;
  for (int i = 0; i < 30; ++i) {
    const std::string name = "lock" + std::to_string(i);
    DistributedLock lock = one.lock(name);
    leases.push_back(take(lock));
    RedisServer& master = master_of(name);
    used.insert(&master);
    EXPECT_NE(master.command({"GET", key(name)}).text.find(leases.back().owner().to_string()), std::string::npos);
  }
  EXPECT_EQ(used.size(), 3U);
  EXPECT_EQ(one.list().size(), 30U);
  for (Lease& lease : leases) EXPECT_TRUE(lease.release());
}

TEST_F(ClusterTest, ASlotThatMovesTakesItsHoldersAndWaitersAlong) {
  expect_to_go_on([&] { cluster.move_slot(slot_of("held"), master_of("held"), other_master("held")); });
}

TEST_F(ClusterTest, TheDeathOfAMasterIsSurvived) {
  expect_to_go_on([&] {
    RedisServer& master = master_of("held");
    master.kill();
    await("no replica takes its place", [&] { return &master_of("held") != &master; });
  });
}

}  // namespace

}  // namespace dlock::test
