// replicas_ack, and servers that are or depend on replicas.
#include "redis/redis_test.hpp"

namespace dlock::test {

namespace {

class ReplicasTest : public RedisTest {
 protected:
  // Waits until the replica gets what is written.
  [[nodiscard]] bool attached(const RedisServer& replica) {
    if (!replica.process().wait_for_output("MASTER <-> REPLICA sync: Finished with success")) return false;
    await("it acknowledges nothing", [&] { return server.replicated_to(1); });
    return true;
  }
  void expect_failure_without_residue(const Client& client, errc expected) {
    DistributedLock lock = client.make_lock("replicated");
    try {
      (void)lock.try_acquire({.lease = long_lease});
      ADD_FAILURE() << "too few replicas have the lock";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), expected) << error.what();
      EXPECT_FALSE(error.detail().empty());
    }
    await_no_residue("replicated");
  }
};

TEST_F(ReplicasTest, AnAcknowledgedLockIsGranted) {
  const RedisServer replica({.primary = server.port()});
  ASSERT_TRUE(attached(replica));
  const Client client = steady({}, "replicas_ack=1");
  DistributedLock lock = client.make_lock("replicated");
  Lease lease = take(lock);
  EXPECT_EQ(replica.connect().command({"GET", keys("replicated").lock}).text, value("replicated"));
  EXPECT_TRUE(lease.release());
}

TEST_F(ReplicasTest, WithoutReplicasTheAcquireFailsAndLeavesNothing) {
  expect_failure_without_residue(steady(impatient(), "replicas_ack=1"), errc::unavailable);
}

TEST_F(ReplicasTest, AReplicaThatNeverAcknowledgesFailsTheAcquireAndLeavesNothing) {
  const RedisServer replica({.primary = server.port()});
  ASSERT_TRUE(attached(replica));
  replica.freeze();
  expect_failure_without_residue(steady(impatient(), "replicas_ack=1"), errc::unavailable);
}

TEST_F(ReplicasTest, FewerAcknowledgementsThanAskedForAreTooFew) {
  const RedisServer replica({.primary = server.port()});
  ASSERT_TRUE(attached(replica));
  expect_failure_without_residue(steady(impatient(), "replicas_ack=2"), errc::unavailable);
}

TEST_F(ReplicasTest, AWaiterThatIsNotAcknowledgedLeavesTheLockToOthers) {
  const Client strict = steady(impatient(), "replicas_ack=1");
  const Client easy = steady();
  DistributedLock lock = easy.make_lock("replicated");
  DistributedLock others = strict.make_lock("replicated");
  std::optional<Lease> lease = take(lock, {.lease = long_lease});
  Pending waiting(others, {.wait = 500ms, .lease = long_lease});
  lease.reset();
  EXPECT_TRUE(waiting.get().error);
  EXPECT_TRUE(take(lock).release());
  await_no_residue("replicated");
}

TEST_F(ReplicasTest, ALeaseThatNoReplicaRenewsIsLostInItsTime) {
  const RedisServer replica({.primary = server.port()});
  ASSERT_TRUE(attached(replica));
  const Client client = steady({}, "replicas_ack=1");
  DistributedLock lock = client.make_lock("replicated");
  Lease lease = take(lock, {.lease = 2s});
  await_renewal(lease);
  replica.freeze();
  const TimePoint last = lease.valid_until();
  await("it is renewed without the replica", [&] { return lease.lost().stop_requested(); });
  // A renewal that was under way when the replica stopped may have been acknowledged.
  EXPECT_LE(lease.valid_until(), saturating_add(last, 2s));
  replica.thaw();
  await_no_residue("replicated");
}

TEST_F(ReplicasTest, ManyLeasesAreRenewedWithAcknowledgement) {
  const RedisServer replica({.primary = server.port()});
  ASSERT_TRUE(attached(replica));
  const Client client = steady({}, "replicas_ack=1");
  std::vector<Lease> leases;
  for (int i = 0; i < 50; ++i) {
    DistributedLock lock = client.make_lock("replicated " + std::to_string(i));
    leases.push_back(take(lock, {.lease = 2s}));
  }
  std::vector<TimePoint> first;
  for (const Lease& lease : leases) first.push_back(lease.valid_until());
  for (std::size_t i = 0; i < leases.size(); ++i) {
    while (leases[i].valid_until() <= saturating_add(first[i], 2s)) await_renewal(leases[i]);
    EXPECT_TRUE(leases[i].held());
  }
}

TEST_F(ReplicasTest, AReplicaIsNoPlaceForLocks) {
  const RedisServer replica({.primary = server.port()});
  ASSERT_TRUE(attached(replica));
  const Client client = connect_patiently(replica.url(), impatient());
  DistributedLock lock = client.make_lock("replicated");
  std::error_code error;
  EXPECT_FALSE(lock.try_acquire({}, error).has_value());
  EXPECT_EQ(error, errc::unavailable) << error.message();
}

TEST_F(ReplicasTest, AReplicaThatTakesWritesGrantsNothingUnlessTheUrlAllowsIt) {
  const RedisServer replica({.primary = server.port(), .lines = {"replica-read-only no"}});
  for (const char* strategy : {"strategy=queue", "strategy=broadcast", "strategy=poll", "replicas_ack=1"}) {
    const Client client = connect_patiently(replica.url(strategy), impatient());
    DistributedLock lock = client.make_lock("replicated");
    std::error_code error;
    EXPECT_FALSE(lock.acquire({.wait = 200ms}, error).has_value()) << strategy;
    EXPECT_EQ(error, errc::unavailable) << error.message();
  }
  const Client allowed = connect_patiently(replica.url("allow_replica=1"), impatient());
  DistributedLock lock = allowed.make_lock("replicated");
  EXPECT_TRUE(take(lock).release());
  EXPECT_TRUE(mentions(allowed.diagnose(), Finding::Severity::warning, "not a master"));
}

// A client that asks for locks all the time hears from the server all the time, so it never probes a silent connection.
TEST_F(ReplicasTest, AMasterThatIsDemotedAndTakesWritesIsLeftByAnIdleClientAndABusyOne) {
  (void)server.command({"CONFIG", "SET", "replica-read-only", "no"});
  const auto log = std::make_shared<EventLog>();
  const Client idle = steady({.observer = log});
  const Client busy = steady(impatient());
  DistributedLock held = idle.make_lock("held");
  const Lease lease = take(held, {.lease = 1s});
  const LossEvent loss(lease);
  DistributedLock lock = busy.make_lock("asked-for");
  EXPECT_TRUE(take(lock).release());
  (void)server.command({"REPLICAOF", "127.0.0.1", "1"});
  std::error_code error;
  await("it goes on there", [&] {
    (void)lock.try_acquire({}, error);
    return error == errc::unavailable;
  });
  log->reconnecting.wait("the idle one stays");
  loss.event().wait("the lease is renewed there");
}

// A master that seldom looks whether its child process has ended ignores what the replica acknowledges first.
TEST_F(ReplicasTest, AReplicaCountsAsAttachedOnceItGetsWhatIsWritten) {
  (void)server.command({"CONFIG", "SET", "hz", "1"});
  RedisServer replica({.primary = server.port()});
  ASSERT_TRUE(attached(replica));
  (void)server.command({"SET", "x", "1"});
  EXPECT_EQ(server.command({"WAIT", "1", "100"}).integer, 1);
}

TEST_F(ReplicasTest, AServerThatWantsMoreReplicasIsUnavailable) {
  (void)server.command({"CONFIG", "SET", "min-replicas-to-write", "1"});
  const Client client = steady(impatient());
  DistributedLock lock = client.make_lock("replicated");
  std::error_code error;
  EXPECT_FALSE(lock.try_acquire({}, error).has_value());
  EXPECT_EQ(error, errc::unavailable) << error.message();
}

}  // namespace

}  // namespace dlock::test
