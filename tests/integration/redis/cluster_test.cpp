// redis-cluster://: three masters, each with a replica, and what may happen to them.
#include <atomic>
#include <deque>
#include <set>
#include <thread>

#include "redis/redis_test.hpp"
#include "tests/support/redis_cluster.hpp"
#include "torture/rig/hang_guard.hpp"

namespace dlock::test {

namespace {

using Severity = Finding::Severity;

class ClusterTest : public ::testing::Test {
 protected:
  explicit ClusterTest(const RedisClusterConfig& config = {.server = {.append_only = true}}) : cluster(config) {}

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
    DistributedLock held = holding.make_lock("held");
    DistributedLock wanted = waiting.make_lock("held");
    Lease lease = take(held);
    Pending next(wanted, {});
    await_waiters(master_of("held"), "held", 1);
    await("the replica does not have the lock", [&] { return master_of("held").replicated_to(1); });
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
    DistributedLock lock = one.make_lock(name);
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

TEST_F(ClusterTest, SoIsThatOfAMasterWhoseReplicaAcknowledgesLocks) {
  expect_to_go_on(
      [&] {
        RedisServer& master = master_of("held");
        master.kill();
        await("no replica takes its place", [&] { return &master_of("held") != &master; });
        master.start();  // without it there are too few replicas
        cluster.await_settled();
      },
      "replicas_ack=1");
}

TEST_F(ClusterTest, APlannedFailoverIsFollowedByHoldersAndWaiters) {
  expect_to_go_on([&] { cluster.fail_over(master_of("held")); });
}

// Who only waits asks seldom, and hears nothing from a master that has become a replica.
TEST_F(ClusterTest, AWaiterListensAtTheNewMasterSoon) {
  const Client holding = client({}, {.lease = long_lease});
  const Client waiting = client();
  DistributedLock held = holding.make_lock("held");
  DistributedLock wanted = waiting.make_lock("held");
  Lease lease = take(held);
  Pending next(wanted, {});
  const auto listeners = [](RedisServer& server) {
    return server.command({"PUBSUB", "SHARDCHANNELS", "dlock:w:*"}).elements.size();
  };
  await("it does not listen", [&] { return listeners(master_of("held")) == 1; });
  cluster.fail_over(master_of("held"));
  await("it does not listen at the new master", [&] { return listeners(master_of("held")) == 1; });
  EXPECT_TRUE(lease.release());
  EXPECT_TRUE(next.lease().held());
}

TEST_F(ClusterTest, AMasterThatWasStoppedAndReplacedGrantsNothingWhenItComesBack) {
  const Client one = client({}, impatient());
  RedisServer& old = master_of("x");
  old.freeze();
  await("no replica takes its place", [&] { return &master_of("x") != &old; });
  DistributedLock lock = one.make_lock("x");
  const Lease lease = take(lock, {.lease = long_lease});
  old.thaw();
  cluster.await_settled();
  const Client other = client();
  DistributedLock same = other.make_lock("x");
  std::error_code error;
  EXPECT_FALSE(same.try_acquire({}, error));
  EXPECT_EQ(error, std::error_code());
  EXPECT_TRUE(lease.held());
}

// Without most of the masters a node grants nothing; whoever waits goes on when they are back.
TEST_F(ClusterTest, ANodeThatIsCutOffFromTheOthersGrantsNothing) {
  const Client one = client({}, impatient());
  RedisServer& master = master_of("x");
  for (const auto& each : cluster.nodes()) {
    if (each.get() != &master) each->freeze();
  }
  await("it does not notice", [&] {
    return master.command({"CLUSTER", "INFO"}).text.find("cluster_state:fail") != std::string::npos;
  });
  DistributedLock lock = one.make_lock("x");
  std::error_code error;
  EXPECT_FALSE(lock.try_acquire({}, error));
  EXPECT_EQ(error, errc::unavailable) << error.message();
  Pending waiting(lock, {});
  for (const auto& each : cluster.nodes()) each->thaw();
  EXPECT_TRUE(waiting.lease().held());
}

TEST_F(ClusterTest, WhenAllNodesWereRestartedLocksAreStillHeld) {
  expect_to_go_on([&] {
    for (const auto& each : cluster.nodes()) each->stop();
    for (const auto& each : cluster.nodes()) each->start();
    cluster.await_settled();
  });
}

// A free lock lacks keys, so where some have gone nobody can tell whether they have gone, too.
TEST_F(ClusterTest, WhileASlotMovesAcquiresPauseAndRenewalsFollow) {
  for (const std::string parameters : {"", "replicas_ack=1"}) {
    const auto log = std::make_shared<EventLog>();
    const Client one = client(parameters, {.lease = 6s, .response_timeout = 10s, .observer = log});
    DistributedLock held = one.make_lock("{tag}held");
    DistributedLock free = one.make_lock("{tag}free");
    const Lease lease = take(held);
    RedisServer& from = master_of("{tag}");
    RedisServer& to = other_master("{tag}");
    const std::uint16_t slot = slot_of("{tag}");
    cluster.begin_move(slot, from, to);
    cluster.migrate_keys(slot, from, to);
    await_renewal(lease);
    EXPECT_NE(to.command({"CLUSTER", "GETKEYSINSLOT", std::to_string(slot), "10"}).elements.size(), 0U);
    Pending pausing(free, {});
    await_renewal(lease);
    EXPECT_FALSE(pausing.done());
    cluster.end_move(slot, to);
    EXPECT_TRUE(pausing.lease().held());
    EXPECT_TRUE(lease.held());
    EXPECT_EQ(log->losses.count(), 0U);
  }
}

// Who is wrong about a slot finds out, whatever it was told once.
TEST_F(ClusterTest, ASlotThatNobodyHadIsUsedWhenSomebodyHasIt) {
  const Client one = client({}, impatient());
  RedisServer& master = master_of("x");
  const std::string slot = std::to_string(slot_of("x"));
  for (const auto& node : cluster.nodes()) (void)node->command({"CLUSTER", "DELSLOTS", slot});
  DistributedLock lock = one.make_lock("x");
  std::error_code error;
  EXPECT_FALSE(lock.try_acquire({}, error));
  EXPECT_EQ(error, errc::unavailable) << error.message();
  (void)master.command({"CLUSTER", "ADDSLOTS", slot});
  cluster.await_settled();
  await("it goes on without the slot", [&] { return lock.try_acquire({}, error).has_value(); });
}

TEST_F(ClusterTest, EightClientsContendWhileTheirSlotMoves) {
  constexpr int rounds = 3;
  std::atomic<int> inside{0};
  std::atomic<int> entered{0};
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, own = client()] {
      DistributedLock lock = own.make_lock("contended");
      std::uint64_t last = 0;
      while (!over) {
        const Lease lease = lock.acquire({.wait = rig::hang_guard, .lease = long_lease});
        EXPECT_EQ(++inside, 1);
        EXPECT_GT(lease.token().value(), last);
        last = lease.token().value();
        ++entered;
        --inside;
      }
    });
  }
  const std::uint16_t slot = slot_of("contended");
  const auto await_more = [&] {
    await("nobody enters any more", [&, before = entered.load()] { return entered >= before + 20; });
  };
  for (int i = 0; i < rounds; ++i) {
    await_more();
    RedisServer& from = master_of("contended");
    RedisServer& to = other_master("contended");
    cluster.begin_move(slot, from, to);
    cluster.migrate_keys(slot, from, to);
    cluster.migrate_keys(slot, from, to);
    cluster.end_move(slot, to);
  }
  await_more();
  over = true;
  for (std::thread& each : threads) each.join();
}

// Each of them is a lock, and those that look alike are others.
TEST_F(ClusterTest, EveryValidNameIsALock) {
  const Client one = client();
  const Client other = client();
  const std::vector<std::string> names = {"a}b", "}",     "{",        "{}",     "a{}b{c}",
                                          "%7D", "a%7Db", "{tag}%7B", "{tag}x", "50%"};
  std::deque<Lease> leases;
  for (const std::string& name : names) {
    DistributedLock lock = one.make_lock(name);
    leases.push_back(take(lock));
    EXPECT_FALSE(other.make_lock(name).try_acquire()) << name;
    EXPECT_EQ(other.inspect(name).token, leases.back().token()) << name;
  }
  std::set<std::string> listed;
  for (const LockInfo& each : other.list()) listed.insert(each.name);
  EXPECT_EQ(listed, std::set<std::string>(names.begin(), names.end()));
  EXPECT_TRUE(other.break_lock("a}b"));
  EXPECT_FALSE(one.inspect("a}b").held);
  EXPECT_TRUE(one.inspect("a%7Db").held);
}

TEST_F(ClusterTest, DoctorSaysWhatAFailoverWouldCost) {
  const Client one = client();
  const auto findings = one.diagnose();
  EXPECT_TRUE(mentions(findings, Severity::ok, "3 masters have all slots"));
  EXPECT_TRUE(mentions(findings, Severity::note, "replicas_ack=1"));
  EXPECT_TRUE(mentions(findings, Severity::ok, "not answered for 1500ms"));
  EXPECT_FALSE(mentions(findings, Severity::error, ""));
  EXPECT_TRUE(mentions(client("replicas_ack=1").diagnose(), Severity::ok, "which acknowledge locks"));
}

TEST_F(ClusterTest, ANodeOfItIsNoServerByItselfAndAServerNoCluster) {
  const Client one = connect_patiently(cluster.node(0).url(), unwaiting());
  const RedisServer alone;
  const Client other = connect_patiently("redis-cluster://127.0.0.1:" + std::to_string(alone.port()), unwaiting());
  for (const auto& [client, hint] : {std::pair(&one, "redis-cluster://"), std::pair(&other, "redis://")}) {
    std::string said;
    for (int i = 0; i < 20 && said.empty(); ++i) {  // some of the slots are that node's
      try {
        (void)client->make_lock("lock" + std::to_string(i)).try_acquire();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), errc::unsupported);
        said = error.detail();
      }
    }
    EXPECT_NE(said.find(hint), std::string::npos) << said;
  }
}

class TwoReplicasTest : public ClusterTest {
 protected:
  TwoReplicasTest() : ClusterTest({.replicas = 2, .server = {.append_only = true}}) {}
};

TEST_F(TwoReplicasTest, WhoOnlyRenewsFindsTheNewMasterThoughTheOldOneIsGone) {
  const auto log = std::make_shared<EventLog>();
  const Client holding = client("replicas_ack=1", {.lease = 12s, .observer = log});
  DistributedLock held = holding.make_lock("held");
  const Lease lease = take(held);
  RedisServer& master = master_of("held");
  master.kill();
  await("no replica takes its place", [&] { return &master_of("held") != &master; });
  await_renewal(lease);
  EXPECT_TRUE(lease.held());
  EXPECT_EQ(log->losses.count(), 0U);
}

TEST_F(TwoReplicasTest, OfManyLeasesNoneIsForgottenWhenTheirMasterIsLeft) {
  const auto log = std::make_shared<EventLog>();
  const Client other = client();
  const Client one = client("replicas_ack=1", {.observer = log});
  DistributedLock theirs = other.make_lock("other");
  const Lease their = take(theirs, {.lease = long_lease});
  DistributedLock wanted = one.make_lock("other");
  const Pending next(wanted, {});  // so that the client listens, and looks at the map
  std::deque<Lease> leases;
  for (int i = 0; i < 40; ++i) {  // renewed at different times
    DistributedLock lock = one.make_lock("{tag}" + std::to_string(i));
    leases.push_back(take(lock, {.lease = 15s + i * 100ms}));
  }
  RedisServer& master = master_of("{tag}");
  master.freeze();
  await("no replica takes its place", [&] { return &master_of("{tag}") != &master; });
  await_renewals(*log, 2 * leases.size());  // twice each
  for (const Lease& lease : leases) EXPECT_TRUE(lease.held());
  EXPECT_EQ(log->losses.count(), 0U);
  master.thaw();
}

class LockedUpClusterTest : public ClusterTest {
 protected:
  static RedisClusterConfig config() {
    RedisUser user = RedisUser::of_all_kinds();
    user.rights.insert(user.rights.end(),
                       {"+cluster|slots", "+asking", "+spublish", "+ssubscribe", "+sunsubscribe", "+scan"});
    return {.replicas = 0, .server = {.tls = true, .password = "administrator", .user = user}};
  }
  LockedUpClusterTest() : ClusterTest(config()) {}
};

TEST_F(LockedUpClusterTest, TlsAndAUserWithFewRightsAreEnough) {
  const auto log = std::make_shared<EventLog>();
  const Client holding = client({}, {.observer = log});
  const Client waiting = client();
  EXPECT_EQ(holding.capabilities().backend, "rediss-cluster");
  for (int i = 0; i < 6; ++i) {
    DistributedLock held = holding.make_lock("lock" + std::to_string(i));
    DistributedLock wanted = waiting.make_lock("lock" + std::to_string(i));
    Lease lease = take(held);
    Pending next(wanted, {});
    await_waiters(master_of("lock" + std::to_string(i)), "lock" + std::to_string(i), 1);
    EXPECT_TRUE(lease.release());
    EXPECT_TRUE(next.lease().held());
  }
  EXPECT_EQ(holding.list().size(), 6U);
  EXPECT_EQ(log->warned.count(), 0U);
}

// As before Redis 7.0.
class OldClusterTest : public ClusterTest {
 protected:
  OldClusterTest()
      : ClusterTest(
            {.replicas = 0, .server = {.lines = {"rename-command SPUBLISH \"\"", "rename-command SSUBSCRIBE \"\""}}}) {}
};

TEST_F(OldClusterTest, WithoutShardedChannelsWaitersAskAndThatIsSaidOnce) {
  const auto log = std::make_shared<EventLog>();
  const Client holding = client();
  const Client waiting = client({}, {.observer = log});
  for (const std::string name : {"one", "two", "three"}) {
    DistributedLock held = holding.make_lock(name);
    DistributedLock wanted = waiting.make_lock(name);
    Lease lease = take(held);
    Pending next(wanted, {});
    await_waiters(master_of(name), name, 1);
    EXPECT_TRUE(lease.release());
    EXPECT_TRUE(next.lease().release());
  }
  log->warned.wait("it is told");
  EXPECT_EQ(log->warnings_with("Redis 7.0"), 1U);
  EXPECT_EQ(log->warned.count(), 1U);
}

}  // namespace

}  // namespace dlock::test
