#include "bench/targets/zookeeper/target.hpp"

#include <gtest/gtest.h>

namespace dlock::bench {
namespace {

TEST(BenchZooKeeperTarget, HasItsStrategyAndAPrefixOfItsOwn) {
  const auto target =
      make_zookeeper_target(rig::UrlText("zookeeper://a,b:2182/chroot?session_timeout=4s"), "ephemeral");
  const rig::UrlText url(target->url(1));
  EXPECT_EQ(url.parameter("strategy"), "ephemeral");
  EXPECT_EQ(url.parameter("session_timeout"), "4s");
  EXPECT_EQ(url.parameter("prefix")->substr(0, 13), "/dlock-bench-");
  EXPECT_EQ(url.original().path(), "/chroot");
  EXPECT_EQ(target->label(), "zookeeper ephemeral");
}

TEST(BenchZooKeeperTarget, RespectsTheUsersPrefix) {
  const auto target = make_zookeeper_target(rig::UrlText("zookeeper://a?prefix=/app/locks"), "sequential");
  EXPECT_EQ(rig::UrlText(target->url(1)).parameter("prefix"), "/app/locks");
}

TEST(BenchZooKeeperTarget, IsShownWithoutPassword) {
  const auto target = make_zookeeper_target(rig::UrlText("zookeeper://a?auth=digest:u:hunter2"), "sequential");
  EXPECT_EQ(target->info().url, "zookeeper://a?auth=***&strategy=sequential");
}

}  // namespace
}  // namespace dlock::bench
