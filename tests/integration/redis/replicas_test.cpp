// replicas_ack, and servers that are or depend on replicas.
#include "redis/redis_test.hpp"

namespace dlock::test {

namespace {

class ReplicasTest : public RedisTest {
 protected:
  // Waits until the replica has caught up.
  [[nodiscard]] static bool attached(const RedisServer& replica) {
    return replica.process().wait_for_output("MASTER <-> REPLICA sync: Finished with success");
  }
  void expect_failure_without_residue(const Client& client, errc expected) {
    DistributedLock lock = client.lock("replicated");
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
  DistributedLock lock = client.lock("replicated");
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
  DistributedLock lock = easy.lock("replicated");
  DistributedLock others = strict.lock("replicated");
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
  DistributedLock lock = client.lock("replicated");
  Lease lease = take(lock, {.lease = 2s});
  const TimePoint first = lease.valid_until();
  await("it is not renewed", [&] { return lease.valid_until() > first; });
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
    DistributedLock lock = client.lock("replicated " + std::to_string(i));
    leases.push_back(take(lock, {.lease = 2s}));
  }
  std::vector<TimePoint> first;
  for (const Lease& lease : leases) first.push_back(lease.valid_until());
  for (std::size_t i = 0; i < leases.size(); ++i) {
    await("one is not renewed", [&] { return leases[i].valid_until() > saturating_add(first[i], 2s); });
    EXPECT_TRUE(leases[i].held());
  }
}

TEST_F(ReplicasTest, AReplicaIsNoPlaceForLocks) {
  const RedisServer replica({.primary = server.port()});
  ASSERT_TRUE(attached(replica));
  const Client client = connect_patiently(replica.url(), impatient());
  DistributedLock lock = client.lock("replicated");
  std::error_code error;
  EXPECT_FALSE(lock.try_acquire({}, error).has_value());
  EXPECT_EQ(error, errc::unavailable) << error.message();
}

TEST_F(ReplicasTest, AServerThatWantsMoreReplicasIsUnavailable) {
  (void)server.command({"CONFIG", "SET", "min-replicas-to-write", "1"});
  const Client client = steady(impatient());
  DistributedLock lock = client.lock("replicated");
  std::error_code error;
  EXPECT_FALSE(lock.try_acquire({}, error).has_value());
  EXPECT_EQ(error, errc::unavailable) << error.message();
}

}  // namespace

}  // namespace dlock::test
