#include "bench/report/durability.hpp"

#include <gtest/gtest.h>

#include "tests/unit/bench/report/sample.hpp"

namespace dlock::bench {
namespace {

TEST(Durability, OfRedisIsThatOfItsAppendOnlyFile) {
  EXPECT_EQ(durability_of(service("redis", "queue", {{"appendonly", "no"}})), Durability::forgotten);
  EXPECT_EQ(durability_of(service("redis", "queue", {{"appendonly", "yes"}, {"appendfsync", "everysec"}})),
            Durability::last_moments);
  EXPECT_EQ(durability_of(service("redis", "queue", {{"appendonly", "yes"}, {"appendfsync", "always"}})),
            Durability::everything);
  EXPECT_EQ(durability_of(service("redis", "queue")), Durability::unknown);
  EXPECT_EQ(durability_of(service("redis", "queue", {{"appendonly", "yes"}})), Durability::unknown);
}

TEST(Durability, OfZooKeeperDependsOnForceSync) {
  EXPECT_EQ(durability_of(service("zookeeper", "sequential", {{"forceSync", "yes"}})), Durability::everything);
  EXPECT_EQ(durability_of(service("zookeeper", "sequential", {{"forceSync", "no"}})), Durability::last_moments);
  EXPECT_EQ(durability_of(service("zookeeper", "sequential")), Durability::unknown);
}

TEST(Durability, OfEtcdIsAlwaysOnDisk) {
  EXPECT_EQ(durability_of(service("etcd", "")), Durability::everything);
}

TEST(Durability, OfPostgresqlDependsOnWhereTheLockIs) {
  const Settings syncs = {{"fsync", "on"}, {"synchronous_commit", "off"}};
  EXPECT_EQ(durability_of(service("postgresql", "table", syncs)), Durability::everything);
  EXPECT_EQ(durability_of(service("postgresql", "table", {{"fsync", "off"}})), Durability::last_moments);
  EXPECT_EQ(durability_of(service("postgresql", "advisory", syncs)), Durability::forgotten);
  EXPECT_EQ(durability_of(service("postgresql", "for-update", syncs)), Durability::forgotten);
  EXPECT_EQ(durability_of(service("postgresql", "table")), Durability::unknown);
}

TEST(Durability, OfPostgresqlDependsOnTheUrl) {
  ServiceInfo table = service("postgresql", "table", {{"fsync", "on"}});
  table.url = "postgresql://host/db?durability=async";
  EXPECT_EQ(durability_of(table), Durability::last_moments);
  table.url = "postgresql://host/db?durability=unlogged";
  EXPECT_EQ(durability_of(table), Durability::forgotten);
}

TEST(Durability, AFailoverForgetsNothingWhereAMajorityKnows) {
  EXPECT_EQ(failover_of(service("zookeeper", "sequential")), Durability::everything);
  EXPECT_EQ(failover_of(service("etcd", "")), Durability::everything);
}

TEST(Durability, AFailoverOfRedisForgetsTheLastGrantsUnlessAllReplicasHaveThem) {
  EXPECT_EQ(failover_of(service("redis", "queue")), Durability::last_moments);
  EXPECT_EQ(failover_of(service("redis-cluster", "queue")), Durability::last_moments);
  ServiceInfo sentinel = service("redis-sentinel", "queue");
  EXPECT_EQ(failover_of(sentinel), Durability::last_moments);
  sentinel.url = "redis-sentinel://s1,s2?service_name=mymaster&replicas_ack=all";
  EXPECT_EQ(failover_of(sentinel), Durability::everything);
}

TEST(Durability, AFailoverOfPostgresqlKnowsWhatIsInReplicatedTables) {
  EXPECT_EQ(failover_of(service("postgresql", "table")), Durability::last_moments);
  EXPECT_EQ(failover_of(service("postgresql", "optimistic")), Durability::last_moments);
  EXPECT_EQ(failover_of(service("postgresql", "advisory")), Durability::forgotten);
  EXPECT_EQ(failover_of(service("postgresql", "for-update")), Durability::forgotten);
  ServiceInfo unlogged = service("postgresql", "table");
  unlogged.url = "postgresql://host/db?durability=unlogged";
  EXPECT_EQ(failover_of(unlogged), Durability::forgotten);
}

TEST(Durability, SaysWhatIsLost) {
  EXPECT_STREQ(lost_text(Durability::everything), "nothing");
  EXPECT_STREQ(lost_text(Durability::last_moments), "last grants");
  EXPECT_STREQ(lost_text(Durability::forgotten), "all locks");
  EXPECT_STREQ(lost_text(failover_of(service("file", ""))), "not known");
}

TEST(Durability, EmbeddedServicesAreNotBetweenMachines) {
  EXPECT_FALSE(between_machines(service("memory", "queue")));
  EXPECT_FALSE(between_machines(service("file", "")));
  EXPECT_TRUE(between_machines(service("redis", "queue")));
}

}  // namespace
}  // namespace dlock::bench
