#include <gtest/gtest.h>

#include "target_checks.hpp"
#include "tests/support/redis_cluster.hpp"
#include "tests/support/redis_sentinel.hpp"
#include "tests/support/redis_server.hpp"
#include "torture/rig/socket.hpp"

namespace dlock::bench {
namespace {

class RedisTargetTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    server_ = std::make_unique<test::RedisServer>(test::RedisConfig{.append_only = true});
  }
  static void TearDownTestSuite() { server_.reset(); }

  static std::size_t keys() { return server_->command({"KEYS", "*"}).elements.size(); }

  static inline std::unique_ptr<test::RedisServer> server_;
};

TEST_F(RedisTargetTest, FloorsExclude) {
  for (const auto& each : targets_of(server_->url())) expect_that_its_floor_excludes(*each);
}

TEST_F(RedisTargetTest, CountsOperations) {
  for (const auto& each : targets_of(server_->url())) expect_that_operations_are_counted(*each, 2);
}

TEST_F(RedisTargetTest, CountsWhatFloorsDoOnce) {
  const auto target = std::move(targets_of(server_->url("strategy=queue")).front());
  const auto floor = target->make_floor(test_name);
  const double before = target->operations()->carried_out;
  floor->acquire();
  floor->release();
  EXPECT_EQ(target->operations()->carried_out - before, 2);
}

TEST_F(RedisTargetTest, CountsTheMessagesOfTheQueue) {
  const auto target = std::move(targets_of(server_->url("strategy=queue")).front());
  const double before = target->operations()->wake_ups.value();
  acquire_and_release(*target, 7);
  EXPECT_EQ(target->operations()->wake_ups.value() - before, 7);
}

TEST_F(RedisTargetTest, NobodyIsWokenWherePollingIsDone) {
  const auto target = std::move(targets_of(server_->url("strategy=poll")).front());
  acquire_and_release(*target, 7);
  EXPECT_EQ(target->operations()->wake_ups, 0.0);
}

TEST_F(RedisTargetTest, WhoHearsABroadcastIsNotKnown) {
  const auto target = std::move(targets_of(server_->url("strategy=broadcast")).front());
  EXPECT_EQ(target->operations()->wake_ups, std::nullopt);
}

TEST_F(RedisTargetTest, DistanceTakesTime) {
  for (const auto& each : targets_of(server_->url())) expect_that_distance_takes_time(*each);
}

TEST_F(RedisTargetTest, LeavesNothingBehind) {
  const std::size_t before = keys();
  const Targets targets = targets_of(server_->url());
  for (const auto& each : targets) {
    acquire_and_release(*each, 1);
    use_other_kinds(*each);
  }
  EXPECT_GT(keys(), before);
  for (const auto& each : targets) each->clean_up();
  EXPECT_EQ(keys(), before);
}

TEST_F(RedisTargetTest, BelowTheUsersPrefixOnlyOurLocksAreRemoved) {
  const std::string url = server_->url("strategy=queue&prefix=app[1]:");
  {
    const Client client = connect(url);
    for (const char* name : {"orders", "dlock-bench"}) {
      ASSERT_TRUE(client.make_lock(name).acquire().release());
      ASSERT_TRUE(client.make_read_write_lock(name).acquire().release());
    }
  }
  const std::size_t before = keys();
  const auto target = std::move(targets_of(url).front());
  acquire_and_release(*target, 1);
  use_other_kinds(*target);
  use_its_floor(*target);
  EXPECT_GT(keys(), before);
  target->clean_up();
  EXPECT_EQ(keys(), before);
}

TEST_F(RedisTargetTest, SaysHowTheServerIsSetUp) {
  const auto target = std::move(targets_of(server_->url()).front());
  EXPECT_EQ(setting(*target, "version"), server_->info("server", "redis_version"));
  EXPECT_EQ(setting(*target, "appendonly"), "yes");
  EXPECT_EQ(setting(*target, "appendfsync"), "everysec");
  EXPECT_EQ(setting(*target, "save"), "never");
}

TEST_F(RedisTargetTest, FloorsLeaveConnectionsForOthers) {
  const auto target = std::move(targets_of(server_->url()).front());
  EXPECT_EQ(target->most_locks(), 0U);
  EXPECT_GT(target->most_floors(), 256U);
}

TEST(RedisTargetOfAUserTest, LogsInAndDoesWithoutTheRightToAsk) {
  const test::RedisServer server({.user = test::RedisUser()});
  auto targets = targets_of(server.url("prefix=dlock:"));
  EXPECT_FALSE(targets.front()->operations());
  EXPECT_EQ(setting(*targets.front(), "appendonly"), "");
}

void expect_that_it_can_be_measured(const std::string& url, const std::vector<test::RedisServer*>& masters) {
  const auto keys = [&] {
    std::size_t sum = 0;
    for (test::RedisServer* const each : masters) sum += each->command({"KEYS", "*"}).elements.size();
    return sum;
  };
  const Targets targets = targets_of(url);
  for (const auto& each : targets) {
    expect_that_its_floor_excludes(*each);
    expect_that_operations_are_counted(*each, 2);
    use_other_kinds(*each);
    const Client client = each->connect(1);
    for (const char* name : {"a", "b", "c", "d", "e"}) (void)client.make_lock(std::string(lock_names) + name).acquire();
    EXPECT_EQ(setting(*each, "masters"), std::to_string(masters.size()));
    EXPECT_EQ(setting(*each, "version"), masters.front()->info("server", "redis_version"));
  }
  EXPECT_GT(keys(), 0U);
  for (const auto& each : targets) each->clean_up();
  EXPECT_EQ(keys(), 0U);
}

TEST(RedisSentinelTargetTest, IsMeasuredAtItsMaster) {
  test::SentinelService service({.replicas = 1, .sentinel_password = "of-sentinels"});
  expect_that_it_can_be_measured(service.url("sentinel_password=of-sentinels"), {&service.master()});
}

TEST(RedisClusterTargetTest, IsMeasuredAtAllItsMasters) {
  test::RedisCluster cluster({.replicas = 0});
  expect_that_it_can_be_measured(cluster.url(), {&cluster.node(0), &cluster.node(1), &cluster.node(2)});
}

TEST(RedisTargetOfNobodyTest, IsSaidToBeUnreachable) {
  rig::Listener nobody;
  nobody.close();
  const std::string port = std::to_string(nobody.port());
  expect_that_it_is_said_to_be_unreachable("redis://:hunter2@127.0.0.1:" + port, port);
}

TEST(RedisTargetOfNobodyTest, ASilentOneIsGivenUp) {
  const rig::Listener silent;
  const std::string port = std::to_string(silent.port());
  expect_that_it_is_said_to_be_unreachable("redis://:hunter2@127.0.0.1:" + port, port);
}

}  // namespace
}  // namespace dlock::bench
