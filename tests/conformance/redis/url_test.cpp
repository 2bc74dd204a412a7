#include "program_run.hpp"
#include "tests/support/redis_cluster.hpp"
#include "tests/support/redis_sentinel.hpp"
#include "tests/support/redis_server.hpp"

namespace dlock::conformance {
namespace {

TEST(BareUrl, Redis_Conforms) {
  const test::RedisServer server;
  expect_to_conform(server.url());
}

TEST(BareUrl, RedisSentinel_Conforms) {
  const test::SentinelService service({.replicas = 1});
  expect_to_conform(service.url());
}

TEST(BareUrl, RedisCluster_OfThreeMasters_Conforms) {
  const test::RedisCluster cluster({.replicas = 0});
  expect_to_conform(cluster.url());
}

}  // namespace
}  // namespace dlock::conformance
