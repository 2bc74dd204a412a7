#include "bench/targets/redis/target.hpp"

#include <gtest/gtest.h>

#include <string>

namespace dlock::bench {
namespace {

TEST(BenchRedisTarget, HasItsStrategyAndAPrefixOfItsOwn) {
  const auto target = make_redis_target(rig::UrlText("redis://:hunter2@db1/3?lease=10s"), "poll");
  const rig::UrlText url(target->url(1));
  EXPECT_EQ(url.parameter("strategy"), "poll");
  EXPECT_EQ(url.parameter("lease"), "10s");
  EXPECT_EQ(url.parameter("prefix")->substr(0, 12), "dlock-bench-");
  EXPECT_EQ(url.original().password(), "hunter2");
  EXPECT_EQ(target->label(), "redis poll");
}

TEST(BenchRedisTarget, TargetsDoNotShareAPrefix) {
  const rig::UrlText given("redis://db1");
  EXPECT_NE(rig::UrlText(make_redis_target(given, "poll")->url(1)).parameter("prefix"),
            rig::UrlText(make_redis_target(given, "poll")->url(1)).parameter("prefix"));
}

TEST(BenchRedisTarget, RespectsTheUsersPrefix) {
  const auto target = make_redis_target(rig::UrlText("redis://db1?prefix=app:"), "queue");
  EXPECT_EQ(rig::UrlText(target->url(1)).parameter("prefix"), "app:");
}

TEST(BenchRedisTarget, IsShownWithoutPasswordAndWithoutWhatIsOurs) {
  const auto target = make_redis_target(rig::UrlText("redis://u:hunter2@db1"), "queue");
  EXPECT_EQ(target->info().url, "redis://u:***@db1?strategy=queue");
}

TEST(BenchRedisTarget, ByTlsItHasNeitherFloorNorDistance) {
  const auto target = make_redis_target(rig::UrlText("rediss://db1"), "queue");
  EXPECT_FALSE(target->has_floor());
  EXPECT_EQ(target->at_distance(std::chrono::milliseconds(1)), nullptr);
  EXPECT_FALSE(target->operations());
}

}  // namespace
}  // namespace dlock::bench
