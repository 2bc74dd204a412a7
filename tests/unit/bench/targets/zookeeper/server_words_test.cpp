#include "bench/targets/zookeeper/server_words.hpp"

#include <gtest/gtest.h>

namespace dlock::bench {
namespace {

constexpr const char* mntr =
    "zk_version\t3.8.0-${mvngit.commit.id}, built on 2023-01-01 UTC\n"
    "zk_server_state\tleader\n"
    "zk_packets_received\t4711\n"
    "zk_avg_latency\t1.25\n"
    "zk_sum_node_deleted_watch_count\t12\n";

TEST(BenchZooKeeperWords, ANumberIsFoundByItsWholeName) {
  EXPECT_EQ(mntr_number(mntr, "zk_packets_received"), 4711);
  EXPECT_EQ(mntr_number(mntr, "zk_avg_latency"), 1.25);
  EXPECT_EQ(mntr_number(mntr, "zk_packets"), std::nullopt);
  EXPECT_EQ(mntr_number(mntr, "packets_received"), std::nullopt);
}

TEST(BenchZooKeeperWords, WhatIsNoNumberIsNone) {
  EXPECT_EQ(mntr_number(mntr, "zk_server_state"), std::nullopt);
  EXPECT_EQ(mntr_number("mntr is not executed because it is not in the whitelist.\n", "zk_packets_received"),
            std::nullopt);
  EXPECT_EQ(mntr_number("", "zk_packets_received"), std::nullopt);
}

TEST(BenchZooKeeperWords, TheVersionIsWithoutItsBuild) {
  EXPECT_EQ(mntr_version(mntr), "3.8.0");
  EXPECT_EQ(mntr_version("nothing\n"), "");
}

TEST(BenchZooKeeperWords, TheConfigurationHasAnotherForm) {
  EXPECT_EQ(conf_number("clientPort=2181\nmaxClientCnxns=60\n", "maxClientCnxns"), 60);
  EXPECT_EQ(conf_number("clientPort=2181\n", "maxClientCnxns"), std::nullopt);
}

}  // namespace
}  // namespace dlock::bench
