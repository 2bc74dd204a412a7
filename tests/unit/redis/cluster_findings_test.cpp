// What endangers locks in a cluster, as its map and its settings tell.
#include "backends/redis/cluster/cluster_findings.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>

namespace dlock::redis {

namespace {

using namespace std::chrono_literals;
using Severity = Finding::Severity;

class ClusterFindingsTest : public testing::Test {
 protected:
  ClusterFindingsTest() { options.lease = 30s; }

  static SlotRange range(std::uint16_t first, std::uint16_t last, const std::string& master) {
    return {first, last, {.name = master, .port = 7000}};
  }
  [[nodiscard]] Finding finding(const std::string& check) const {
    const auto all = judge_cluster(state, options);
    EXPECT_EQ(std::count_if(all.begin(), all.end(), [&](const Finding& each) { return each.check == check; }), 1)
        << check;
    const auto found = std::find_if(all.begin(), all.end(), [&](const Finding& each) { return each.check == check; });
    return found == all.end() ? Finding{} : *found;
  }
  [[nodiscard]] bool mentions(const std::string& check, const std::string& words) const {
    return finding(check).message.find(words) != std::string::npos;
  }

  Options options;
  ClusterState state = {.ranges = {range(0, 8191, "a"), range(8192, 16383, "b")},
                        .replicas = {{"a:7000", 2}, {"b:7000", 1}},
                        .node_timeout = 15s};
};

TEST_F(ClusterFindingsTest, AllIsWellWhereReplicasAcknowledge) {
  options.replicas_ack = 1;
  for (const char* check : {"cluster", "failover", "node-timeout"}) {
    EXPECT_EQ(finding(check).severity, Severity::ok) << finding(check).message;
  }
  EXPECT_TRUE(mentions("cluster", "2 masters"));
}

TEST_F(ClusterFindingsTest, SlotsThatNobodyHasAreAnError) {
  state.ranges.back() = range(8192, 16382, "b");
  EXPECT_EQ(finding("cluster").severity, Severity::error);
  EXPECT_TRUE(mentions("cluster", "16383 of 16384 slots")) << finding("cluster").message;
  state.ranges.pop_back();
  EXPECT_TRUE(mentions("cluster", "8192 of 16384 slots")) << finding("cluster").message;
}

TEST_F(ClusterFindingsTest, AMasterOfSeveralRangesIsOne) {
  state.ranges = {range(0, 99, "a"), range(100, 199, "b"), range(200, 16383, "a")};
  EXPECT_EQ(finding("cluster").severity, Severity::ok);
  EXPECT_TRUE(mentions("cluster", "2 masters"));
}

TEST_F(ClusterFindingsTest, AMasterWithoutAReplicaIsNamed) {
  state.replicas["a:7000"] = 0;
  options.replicas_ack = 1;
  EXPECT_EQ(finding("failover").severity, Severity::warning);
  EXPECT_TRUE(mentions("failover", "a:7000"));
  EXPECT_FALSE(mentions("failover", "b:7000"));
}

TEST_F(ClusterFindingsTest, ReplicasThatNobodyWaitsForAreNoted) {
  EXPECT_EQ(finding("failover").severity, Severity::note);
  EXPECT_TRUE(mentions("failover", "replicas_ack=1 ")) << "as many as every master has";
  state.replicas["b:7000"] = 2;
  options.replicas_ack = 1;
  EXPECT_EQ(finding("failover").severity, Severity::note);
  EXPECT_TRUE(mentions("failover", "replicas_ack=2 "));
  options.replicas_ack = 2;
  EXPECT_EQ(finding("failover").severity, Severity::ok);
}

TEST_F(ClusterFindingsTest, AMasterThatIsMissedOnlyAfterALeaseIsNoted) {
  state.node_timeout = 30s;
  EXPECT_EQ(finding("node-timeout").severity, Severity::ok);
  state.node_timeout = 30'001ms;
  EXPECT_EQ(finding("node-timeout").severity, Severity::note);
  EXPECT_TRUE(mentions("node-timeout", "30s")) << finding("node-timeout").message;
  EXPECT_TRUE(mentions("node-timeout", "cluster-node-timeout"));
}

TEST_F(ClusterFindingsTest, AnUnknownTimeoutIsNoted) {
  state.node_timeout.reset();
  EXPECT_EQ(finding("node-timeout").severity, Severity::note);
  EXPECT_TRUE(mentions("node-timeout", "CONFIG GET"));
}

TEST_F(ClusterFindingsTest, ReplicasThatCannotBeCountedAreNoted) {
  state.replicas.clear();
  EXPECT_EQ(finding("failover").severity, Severity::note);
  EXPECT_TRUE(mentions("failover", "INFO"));
}

}  // namespace

}  // namespace dlock::redis
