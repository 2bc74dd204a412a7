// redis-cluster://: three masters, each with a replica, and what may happen to them.
#include <deque>
#include <set>

#include "redis/redis_test.hpp"
#include "tests/support/redis_cluster.hpp"

namespace dlock::test {

namespace {

using Severity = Finding::Severity;

std::string key(const std::string& name) {
  return keys(name).lock;
}

void await_another_master(RedisCluster& cluster, const std::string& name, const RedisServer& former) {
  await("no replica takes its place", [&] { return &cluster.master_of(key(name)) != &former; });
}

class AnyClusterTest : public ::testing::Test {
 protected:
  explicit AnyClusterTest(RedisCluster& used) : cluster(used) {}

  [[nodiscard]] Client client(const std::string& parameters = {}, ClientOptions options = {}) {
    return connect_patiently(cluster.url(parameters), std::move(options));
  }
  [[nodiscard]] RedisServer& master_of(const std::string& name) { return cluster.master_of(key(name)); }
  [[nodiscard]] RedisServer& other_master(const std::string& name) { return cluster.other_master(key(name)); }
  [[nodiscard]] std::uint16_t slot_of(const std::string& name) { return cluster.slot_of(key(name)); }

  RedisCluster& cluster;
};

// The tests of a process share a cluster, until one fails: what a test did to its nodes is undone.
class ClusterTest : public AnyClusterTest {
 protected:
  ClusterTest() : AnyClusterTest(*shared()) {}
  void TearDown() override {
    if (HasFailure()) return shared().reset();
    for (const auto& each : cluster.nodes()) {
      if (!each->running()) each->start();
      if (!each->active()) each->thaw();
    }
    cluster.await_settled();
    for (const auto& each : cluster.nodes()) {
      if (each->info("replication", "role") == "master") (void)each->command({"FLUSHALL"});
    }
  }

 private:
  static std::unique_ptr<RedisCluster>& shared() {
    static std::unique_ptr<RedisCluster> cluster;
    if (!cluster) cluster = std::make_unique<RedisCluster>(RedisClusterConfig{.server = {.append_only = true}});
    return cluster;
  }
};

// --- A holder and a waiter go on -------------------------------------------------------------------------------------

struct Trouble {
  const char* name;
  void (*happen)(RedisCluster& cluster, RedisServer& master);
  const char* parameters = "";
};

const Trouble troubles[] = {
    {"SlotMoved",
     [](RedisCluster& cluster, RedisServer& master) {
       cluster.move_slot(cluster.slot_of(key("{x}held")), master, cluster.other_master(key("{x}held")));
     }},
    {"MasterKilled",
     [](RedisCluster& cluster, RedisServer& master) {
       master.kill();
       await_another_master(cluster, "{x}held", master);
     }},
    {"MasterKilledWhoseReplicaAcknowledges",
     [](RedisCluster& cluster, RedisServer& master) {
       master.kill();
       await_another_master(cluster, "{x}held", master);
       master.start();  // without it there are too few replicas
       cluster.await_settled();
     },
     "replicas_ack=1"},
    {"PlannedFailover",
     [](RedisCluster& cluster, RedisServer& master) {
       cluster.fail_over(master);
       await_another_master(cluster, "{x}held", master);
     }},
    {"AllRestarted",
     [](RedisCluster& cluster, RedisServer& /*master*/) {
       for (const auto& each : cluster.nodes()) each->stop();
       for (const auto& each : cluster.nodes()) each->start();
       cluster.await_settled();
     }},
};

class ClusterTroubleTest : public ClusterTest, public ::testing::WithParamInterface<Trouble> {};

TEST_P(ClusterTroubleTest, HolderAndWaiter_GoOn) {
  expect_to_go_on([this](ClientOptions options) { return client(GetParam().parameters, std::move(options)); },
                  [this]() -> RedisServer& { return master_of("{x}held"); },
                  [this] { GetParam().happen(cluster, master_of("{x}held")); });
}

INSTANTIATE_TEST_SUITE_P(, ClusterTroubleTest, ::testing::ValuesIn(troubles),
                         [](const auto& row) { return row.param.name; });

// --- Slots and masters -----------------------------------------------------------------------------------------------

// Shows: hole redis-cluster
// Hazard: H33 a cluster's redirections, moving slots, pushes
TEST_F(ClusterTest, ReplacedMasterThawed_GrantsNothing) {
  const Client one = client({}, impatient());
  RedisServer& old = master_of("x");
  old.freeze();
  await_another_master(cluster, "x", old);
  const Lease lease = take(one, "x", {.lease = long_lease});
  old.thaw();
  cluster.await_settled();
  std::error_code error;
  const Client other = client();
  EXPECT_FALSE(other.make_lock("x").try_acquire({}, error));
  EXPECT_EQ(error, std::error_code());
  EXPECT_TRUE(lease.held());
}

// Without most of the masters a node grants nothing; a waiter goes on when they are back.
// Shows: hole redis-cluster
TEST_F(ClusterTest, NodeCutOffFromTheOthers_GrantsNothing) {
  const Client one = client({}, impatient());
  RedisServer& master = master_of("x");
  for (const auto& each : cluster.nodes()) {
    if (each.get() != &master) each->freeze();
  }
  await("it does not notice", [&] {
    return master.command({"CLUSTER", "INFO"}).text.find("cluster_state:fail") != std::string::npos;
  });
  EXPECT_EQ(try_error(one, "x"), errc::unavailable);
  DistributedLock lock = one.make_lock("x");
  Pending waiting(lock, {});
  for (const auto& each : cluster.nodes()) each->thaw();
  EXPECT_TRUE(waiting.lease().held());
}

// A free lock lacks keys, so where some have gone it cannot be known whether they have gone, too.
TEST_F(ClusterTest, SlotBeingMoved_AcquiresPauseAndRenewalsFollow) {
  for (const std::string parameters : {"", "replicas_ack=1"}) {
    const auto log = std::make_shared<EventLog>();
    const Client one = client(parameters, {.lease = 12s, .response_timeout = 10s, .observer = log});
    DistributedLock free = one.make_lock("{tag}free");
    const Lease lease = take(one, "{tag}held");
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

TEST_F(ClusterTest, Diagnosis_SaysWhatAFailoverWouldCost) {
  const auto findings = client().diagnose();
  EXPECT_TRUE(mentions(findings, Severity::ok, "3 masters have all slots"));
  EXPECT_TRUE(mentions(findings, Severity::note, "replicas_ack=1"));
  EXPECT_TRUE(mentions(findings, Severity::ok, "not answered for 1500ms"));
  EXPECT_FALSE(mentions(findings, Severity::error, ""));
  EXPECT_TRUE(mentions(client("replicas_ack=1").diagnose(), Severity::ok, "which acknowledge locks"));
}

TEST_F(ClusterTest, NodeAsServerOrServerAsCluster_IsUnsupportedAndNamed) {
  const RedisServer alone;
  const std::pair<std::string, const char*> urls[] = {{cluster.node(0).url(), "redis-cluster://"},
                                                      {"redis-cluster://" + alone.address(), "redis://"}};
  for (const auto& [url, hint] : urls) {
    const Client one = connect_patiently(url, unwaiting());
    std::string said;
    for (int i = 0; i < 20 && said.empty(); ++i) {  // some of the slots are that node's
      try {
        (void)one.make_lock("lock" + std::to_string(i)).try_acquire();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), errc::unsupported);
        said = error.detail();
      }
    }
    EXPECT_NE(said.find(hint), std::string::npos) << said;
  }
}

// --- Other clusters --------------------------------------------------------------------------------------------------

class OwnClusterTest : public AnyClusterTest {
 protected:
  explicit OwnClusterTest(const RedisClusterConfig& config) : AnyClusterTest(own_), own_(config) {}

 private:
  RedisCluster own_;
};

class TwoReplicasTest : public OwnClusterTest {
 protected:
  TwoReplicasTest() : OwnClusterTest({.replicas = 2, .server = {.append_only = true}}) {}
};

TEST_F(TwoReplicasTest, MasterFrozen_NoneOfManyLeasesIsForgotten) {
  const auto log = std::make_shared<EventLog>();
  const Client other = client();
  Contender one(client("replicas_ack=1", {.observer = log}), "other");
  const Lease their = take(other, "other", {.lease = long_lease});
  const Pending next(one.lock, {});  // so that the client subscribes, and reads the map
  std::deque<Lease> leases;
  for (int i = 0; i < 40; ++i) {  // renewed at different times
    leases.push_back(take(one.client, "{tag}" + std::to_string(i), {.lease = outlasting.value() + i * 100ms}));
  }
  RedisServer& master = master_of("{tag}");
  master.freeze();
  await_another_master(cluster, "{tag}", master);
  await_renewals(*log, 2 * leases.size());  // twice each
  for (const Lease& lease : leases) EXPECT_TRUE(lease.held());
  EXPECT_EQ(log->losses.count(), 0U);
  master.thaw();
}

class LockedUpClusterTest : public OwnClusterTest {
 protected:
  static RedisClusterConfig config() {
    RedisUser user = RedisUser::of_all_kinds();
    user.rights.insert(user.rights.end(),
                       {"+cluster|slots", "+asking", "+spublish", "+ssubscribe", "+sunsubscribe", "+scan"});
    return {.replicas = 0, .server = {.tls = true, .password = "administrator", .user = user}};
  }
  LockedUpClusterTest() : OwnClusterTest(config()) {}
};

TEST_F(LockedUpClusterTest, TlsAndDocumentedRights_Suffice) {
  const auto log = std::make_shared<EventLog>();
  const Client holding = client({}, {.observer = log});
  const Client waiting = client();
  EXPECT_EQ(holding.capabilities().backend, "rediss-cluster");
  for (int i = 0; i < 6; ++i) {
    const std::string name = "lock" + std::to_string(i);
    DistributedLock wanted = waiting.make_lock(name);
    Lease lease = take(holding, name);
    Pending next(wanted, {});
    await_waiters(master_of(name), name, 1);
    EXPECT_TRUE(lease.release());
    EXPECT_TRUE(next.lease().held());
  }
  EXPECT_EQ(holding.list().size(), 6U);
  EXPECT_EQ(log->warned.count(), 0U);
}

}  // namespace

}  // namespace dlock::test
