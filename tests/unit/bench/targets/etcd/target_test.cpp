#include "bench/targets/etcd/target.hpp"

#include <gtest/gtest.h>

#include "bench/targets/etcd/metrics.hpp"

namespace dlock::bench {
namespace {

TEST(BenchEtcdTarget, HasAPrefixOfItsOwn) {
  const auto target = make_etcd_target(rig::UrlText("etcd://a,b:2380?session_ttl=4s"));
  const rig::UrlText url(target->url(1));
  EXPECT_EQ(url.parameter("session_ttl"), "4s");
  EXPECT_EQ(url.parameter("prefix")->substr(0, 12), "dlock-bench-");
  EXPECT_TRUE(url.parameter("prefix")->ends_with('/'));
  EXPECT_EQ(target->label(), "etcd");
}

TEST(BenchEtcdTarget, RespectsTheUsersPrefix) {
  const auto target = make_etcd_target(rig::UrlText("etcd://a?prefix=app/locks/"));
  EXPECT_EQ(rig::UrlText(target->url(1)).parameter("prefix"), "app/locks/");
}

TEST(BenchEtcdTarget, IsShownWithoutPassword) {
  const auto target = make_etcd_target(rig::UrlText("etcd://u:hunter2@a"));
  EXPECT_EQ(target->info().url.find("hunter2"), std::string::npos);
}

TEST(BenchEtcdTarget, DoesNotCountWhatItCannotAskFor) {
  EXPECT_FALSE(make_etcd_target(rig::UrlText("etcds://a"))->operations());
}

TEST(BenchEtcdMetrics, AreSummedOverTheirLabels) {
  const std::string_view text = "# HELP a says\na{b=\"c d\"} 1\r\na{b=\"e\"} 2.5\na_long 10\nab 20\na 1e+02\nd\ne x\n";
  EXPECT_EQ(metric_sum(text, "a"), 103.5);
  EXPECT_EQ(metric_sum(text, "a_long"), 10);
  EXPECT_EQ(metric_sum(text, "a_"), std::nullopt);
  EXPECT_EQ(metric_sum(text, "d"), std::nullopt);
  EXPECT_EQ(metric_sum(text, "e"), std::nullopt);
  EXPECT_EQ(metric_sum("a 7", "a"), 7);
  EXPECT_EQ(metric_sum("", "a"), std::nullopt);
}

}  // namespace
}  // namespace dlock::bench
