#include <gtest/gtest.h>

#include "target_checks.hpp"
#include "tests/support/zookeeper_client.hpp"
#include "tests/support/zookeeper_server.hpp"
#include "torture/rig/socket.hpp"

namespace dlock::bench {
namespace {

class ZooKeeperTargetTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    server_ = std::make_unique<test::ZooKeeperServer>(test::ZooKeeperConfig{.sync_to_disk = true});
  }
  static void TearDownTestSuite() { server_.reset(); }

  static std::vector<std::string> nodes(const std::string& path = "/") {
    return test::ZooKeeperClient(server_->address()).children(path).value_or(std::vector<std::string>());
  }

  static inline std::unique_ptr<test::ZooKeeperServer> server_;
};

TEST_F(ZooKeeperTargetTest, FloorsExclude) {
  for (const auto& each : targets_of(server_->url())) expect_that_its_floor_excludes(*each);
}

TEST_F(ZooKeeperTargetTest, CountsOperations) {
  for (const auto& each : targets_of(server_->url())) expect_that_operations_are_counted(*each, 2);
}

TEST_F(ZooKeeperTargetTest, CountsWatchesThatFire) {
  const auto target = std::move(targets_of(server_->url("strategy=sequential")).front());
  const Client one = target->connect(1);
  const Client other = target->connect(1);
  DistributedLock held = one.make_lock(test_name);
  DistributedLock wanted = other.make_lock(test_name);
  Lease lease = held.acquire();
  const double before = target->operations()->wake_ups.value();
  const auto watches = server_->figure("zk_watch_count");
  std::jthread waiter([&] { (void)wanted.acquire(); });
  while (server_->figure("zk_watch_count") == watches) std::this_thread::yield();
  EXPECT_TRUE(lease.release());
  waiter.join();
  EXPECT_GE(target->operations()->wake_ups.value() - before, 1);
}

TEST_F(ZooKeeperTargetTest, DistanceTakesTime) {
  for (const auto& each : targets_of(server_->url())) expect_that_distance_takes_time(*each);
}

TEST_F(ZooKeeperTargetTest, LeavesNothingBehind) {
  const auto before = nodes();
  const Targets targets = targets_of(server_->url());
  for (const auto& each : targets) {
    acquire_and_release(*each, 1);
    use_other_kinds(*each);
    use_its_floor(*each);
  }
  EXPECT_NE(nodes(), before);
  for (const auto& each : targets) each->clean_up();
  EXPECT_EQ(nodes(), before);
}

TEST_F(ZooKeeperTargetTest, BelowTheUsersPrefixOnlyFloorsAreRemoved) {
  test::ZooKeeperClient(server_->address()).create_all("/app/orders");
  const auto target = std::move(targets_of(server_->url("strategy=sequential&prefix=/app")).front());
  const auto before = nodes("/app");
  (void)target->make_floor(test_name);
  EXPECT_NE(nodes("/app"), before);
  target->clean_up();
  EXPECT_EQ(nodes("/app"), before);
}

TEST_F(ZooKeeperTargetTest, WorksBelowAChroot) {
  test::ZooKeeperClient(server_->address()).create_all("/deep/root");
  const auto target = std::move(targets_of(server_->url("/deep/root?strategy=ephemeral")).front());
  expect_that_its_floor_excludes(*target);
  target->clean_up();
  EXPECT_TRUE(nodes("/deep/root").empty());
}

TEST_F(ZooKeeperTargetTest, CleansUpAsTheUserThatMadeTheNodes) {
  const auto before = nodes();
  const auto target = std::move(targets_of(server_->url("strategy=sequential&auth=digest:u:secret")).front());
  acquire_and_release(*target, 1);
  target->clean_up();
  EXPECT_EQ(nodes(), before);
}

TEST_F(ZooKeeperTargetTest, SaysHowTheServerIsSetUp) {
  const auto target = std::move(targets_of(server_->url()).front());
  EXPECT_EQ(setting(*target, "version").substr(0, 2), "3.");
  EXPECT_EQ(setting(*target, "servers"), "1");
  EXPECT_EQ(setting(*target, "forceSync"), "yes");
  EXPECT_EQ(target->most_floors(), 0U);
}

TEST(ZooKeeperTargetOfAStrictServerTest, KnowsWhatItIsNotTold) {
  const test::ZooKeeperServer server({.lines = {"maxClientCnxns=30", "4lw.commands.whitelist=srvr"}});
  const auto target = std::move(targets_of(server.url("strategy=ephemeral")).front());
  EXPECT_FALSE(target->operations());
  EXPECT_EQ(setting(*target, "version"), "");
  EXPECT_GT(target->most_floors(), 0U);
  EXPECT_LT(target->most_floors(), 60U);
}

TEST(ZooKeeperTargetOfALazyServerTest, SaysThatItDoesNotWaitForTheDisk) {
  const test::ZooKeeperServer server({.lines = {"maxClientCnxns=100"}});
  const auto target = std::move(targets_of(server.url("strategy=ephemeral")).front());
  EXPECT_EQ(setting(*target, "forceSync"), "no");
  EXPECT_EQ(target->most_floors(), 80U);
}

TEST(ZooKeeperTargetOfAnEnsembleTest, AddsUpAllServers) {
  const test::ZooKeeperEnsemble ensemble;
  const auto target = std::move(targets_of(ensemble.url("strategy=sequential")).front());
  EXPECT_EQ(setting(*target, "servers"), "3");
  expect_that_operations_are_counted(*target, 2);
  expect_that_distance_takes_time(*target);
}

TEST(ZooKeeperTargetOfNobodyTest, IsSaidToBeUnreachable) {
  rig::Listener nobody;
  nobody.close();
  const std::string port = std::to_string(nobody.port());
  expect_that_it_is_said_to_be_unreachable("zookeeper://127.0.0.1:" + port + "?auth=digest:u:hunter2", port);
}

}  // namespace
}  // namespace dlock::bench
