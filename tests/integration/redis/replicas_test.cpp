// replicas_ack, servers that are or depend on replicas, and a master that becomes a replica.
#include <deque>

#include "redis/redis_test.hpp"

namespace dlock::test {

namespace {

class ReplicasTest : public RedisTest {
 protected:
  // A replica that gets what is written.
  std::unique_ptr<RedisServer> attach(RedisConfig config = {}) {
    config.primary = server.port();
    auto replica = std::make_unique<RedisServer>(std::move(config));
    EXPECT_TRUE(replica->process().wait_for_output("MASTER <-> REPLICA sync: Finished with success"));
    await("it acknowledges nothing", [&] { return server.replicated_to(1); });
    return replica;
  }
};

// Hazard: H19 a failover loses locks: `replicas_ack`, fencing
TEST_F(ReplicasTest, TooFewAcknowledgements_FailTheAcquireAndLeaveNothing) {
  std::unique_ptr<RedisServer> replica;
  const std::pair<const char*, std::function<std::string()>> cases[] = {
      {"no replica", [] { return "replicas_ack=1"; }},
      {"a replica fewer than wanted",
       [&] {
         replica = attach();
         return "replicas_ack=2";
       }},
      {"a replica that does not acknowledge",
       [&] {
         replica->freeze();
         return "replicas_ack=1";
       }},
  };
  for (const auto& [name, parameters] : cases) {
    const Client client = steady(impatient(), parameters());
    EXPECT_EQ(try_error(client, "replicated"), errc::unavailable) << name;
    await_no_residue("replicated");
    Semaphore semaphore = client.make_semaphore("x", 2);
    std::error_code error;
    EXPECT_FALSE(semaphore.try_acquire({}, error).has_value()) << name;
    EXPECT_EQ(error, errc::unavailable) << name;
    await("a permit is left", [&] { return server.command({"ZCARD", "dlock.sem:x"}).integer == 0; });
  }
}

TEST_F(ReplicasTest, RenewalsNotAcknowledged_LeaseIsLostInItsTime) {
  const auto replica = attach();
  const Client client = steady({}, "replicas_ack=1");
  const Lease lease = take(client, "replicated", {.lease = 2s});
  await_renewal(lease);
  replica->freeze();
  const TimePoint last = lease.valid_until();
  await("it is renewed without the replica", [&] { return lease.lost().stop_requested(); });
  // A renewal that was in flight when the replica stopped may have been acknowledged.
  EXPECT_LE(lease.valid_until(), saturating_add(last, 2s));
  replica->thaw();
  await_no_residue("replicated");
}

// Shows: hole redis-writable-replica
// Hazard: a writable replica grants locks: dlock asks for the role
TEST_F(ReplicasTest, Replica_GrantsNothingUnlessTheUrlAllowsIt) {
  const auto read_only = attach();
  EXPECT_EQ(try_error(connect_patiently(read_only->url(), impatient())), errc::unavailable);
  const auto writable = attach({.lines = {"replica-read-only no"}});
  for (const char* strategy : {"strategy=queue", "strategy=broadcast", "strategy=poll", "replicas_ack=1"}) {
    const Client client = connect_patiently(writable->url(strategy), impatient());
    std::error_code error;
    EXPECT_FALSE(client.make_lock("replicated").acquire({.wait = 200ms}, error).has_value()) << strategy;
    EXPECT_EQ(error, errc::unavailable) << strategy;
  }
  const Client allowed = connect_patiently(writable->url("allow_replica=1"), impatient());
  EXPECT_TRUE(take(allowed, "replicated").release());
  EXPECT_TRUE(mentions(allowed.diagnose(), Finding::Severity::warning, "not a master"));
}

// A client that sends requests all the time gets answers all the time, so it never probes its connection.
// Shows: hole redis-writable-replica
// Hazard: a writable replica grants locks: dlock asks for the role
TEST_F(ReplicasTest, DemotedMasterTakesWrites_IdleAndBusyClientsLeaveIt) {
  (void)server.command({"CONFIG", "SET", "replica-read-only", "no"});
  const auto log = std::make_shared<EventLog>();
  const Client idle = steady({.observer = log});
  const Client busy = steady(impatient());
  const Lease lease = take(idle, "held", {.lease = 1s});
  const LossEvent loss(lease);
  EXPECT_TRUE(take(busy, "tried").release());
  (void)server.command({"REPLICAOF", "127.0.0.1", "1"});
  await("it goes on there", [&] { return try_error(busy) == errc::unavailable; });
  log->reconnecting.wait("the idle one stays");
  loss.event().wait("the lease is renewed there");
}

TEST_F(ReplicasTest, ServerWantsMoreReplicas_IsUnavailable) {
  (void)server.command({"CONFIG", "SET", "min-replicas-to-write", "1"});
  EXPECT_EQ(try_error(steady(impatient())), errc::unavailable);
}

// --- A master that becomes a replica, as in a planned failover -------------------------------------------------------

class DemotionTest : public RedisStrategyTest {};

// Hazard: H22 Sentinel: an old master grants locks; the client asks the sentinels every second
TEST_P(DemotionTest, CrowdOfWaiters_DoesNotStormTheDemotedServer) {
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
  // At once: while another client holds a lock, a replica says so, and a client that polls is not refused. Then all of
  // them want to write.
  RedisConnection demoting = server.connect();
  (void)demoting.command({"MULTI"});
  for (int i = 0; i < crowd; ++i) {
    (void)demoting.command({"PEXPIRE", keys("stormed/" + std::to_string(i)).lock, "1"});
  }
  (void)demoting.command({"REPLICAOF", "127.0.0.1", "1"});  // no server is there
  ASSERT_EQ(demoting.command({"EXEC"}).elements.size(), crowd + 1U);
  EXPECT_FALSE(waiting.front().event().wait_for(5s));
  // One waiter asks in place of all; before that, the waiters that have just come may ask twice.
  EXPECT_LE(server.calls_of({"eval", "evalsha"}), 1000);
  EXPECT_LE(std::stoll(server.info("stats", "total_connections_received")), 100);
  (void)server.command({"REPLICAOF", "NO", "ONE"});
  for (Pending& each : waiting) EXPECT_TRUE(each.lease().held());
}

INSTANTIATE_TEST_SUITE_P(, DemotionTest, all_strategies(), Room::strategy_name);

// The proxy leads where a name or a virtual address leads to: new connections lead to the promoted server, and those
// that stand stay.
class DemotedQueueTest : public RedisTest {
 protected:
  void fail_over() {
    await("the replica does not connect", [&] { return promoted.info("replication", "master_link_status") == "up"; });
    await("the replica does not acknowledge", [&] { return server.replicated_to(1); });
    (void)promoted.command({"REPLICAOF", "NO", "ONE"});
    (void)server.command({"REPLICAOF", "127.0.0.1", std::to_string(promoted.port())});
    proxy.retarget(rig::Endpoint::loopback(promoted.port()));
  }

  RedisServer promoted{{.primary = server.port()}};
};

// Shows: first-come
// Hazard: H22 Sentinel: an old master grants locks; the client asks the sentinels every second
TEST_F(DemotedQueueTest, Waiters_SubscribeAtThePromotedServerAndAreServedInOrder) {
  Contender moved(disturbed(), "handed");
  {
    const Lease lease = take(moved.lock, {.lease = long_lease});
    Pending waiting(moved.lock, {});
    await("the waiter does not subscribe", [&] { return subscribers(server) == 1; });
    fail_over();
    await("the subscriber stays with the old master",
          [&] { return subscribers(promoted) == 1 && subscribers(server) == 0; });
  }
  Contender settled(connect_patiently(promoted.url()), "handed");
  for (int i = 0; i < 10; ++i) {
    Lease lease = take(settled.lock);
    Pending first(moved.lock, {});
    await_reachable(promoted, "handed", 1);
    Pending second(settled.lock, {});
    await_reachable(promoted, "handed", 2);
    EXPECT_TRUE(lease.release());
    Lease earlier = first.lease();
    const FencingToken token = earlier.token();
    EXPECT_TRUE(earlier.release());
    EXPECT_LT(token, second.lease().token()) << "it was passed over";
  }
}

}  // namespace

}  // namespace dlock::test
