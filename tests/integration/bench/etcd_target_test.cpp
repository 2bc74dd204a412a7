#include <gtest/gtest.h>

#include "target_checks.hpp"
#include "tests/support/etcd_server.hpp"
#include "torture/rig/socket.hpp"

namespace dlock::bench {
namespace {

class EtcdTargetTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = std::make_unique<test::EtcdServer>(); }
  static void TearDownTestSuite() { server_.reset(); }

  static std::unique_ptr<Target> target(const std::string& parameters = {}) {
    return std::move(targets_of(server_->url(parameters)).front());
  }

  static inline std::unique_ptr<test::EtcdServer> server_;
};

TEST_F(EtcdTargetTest, FloorsExclude) {
  expect_that_its_floor_excludes(*target());
}

TEST_F(EtcdTargetTest, CountsOperations) {
  expect_that_operations_are_counted(*target(), 2);
}

TEST_F(EtcdTargetTest, CountsEventsThatWake) {
  const auto watched = target();
  const Client one = watched->connect(1);
  const Client other = watched->connect(1);
  DistributedLock held = one.make_lock(test_name);
  DistributedLock wanted = other.make_lock(test_name);
  Lease lease = held.acquire();
  const double before = watched->operations()->wake_ups.value();
  std::jthread waiter([&] { (void)wanted.acquire(); });
  while (server_->keys("dlock-bench-").size() < 4) std::this_thread::yield();  // two sessions, two places in the queue
  EXPECT_TRUE(lease.release());
  waiter.join();
  EXPECT_GE(watched->operations()->wake_ups.value() - before, 1);
}

TEST_F(EtcdTargetTest, DistanceTakesTime) {
  expect_that_distance_takes_time(*target());
}

TEST_F(EtcdTargetTest, LeavesNothingBehind) {
  (void)server_->ctl({"put", "dlock/orders", "1"});
  const auto before = server_->keys("");
  const auto used = target();
  use_other_kinds(*used);
  const auto floor = used->make_floor(test_name);
  floor->acquire();
  EXPECT_NE(server_->keys(""), before);
  used->clean_up();
  EXPECT_EQ(server_->keys(""), before);
}

TEST_F(EtcdTargetTest, BelowTheUsersPrefixOnlyFloorsAreRemoved) {
  (void)server_->ctl({"put", "app/orders/1", "1"});
  const auto used = target("prefix=app/");
  const auto floor = used->make_floor(test_name);
  floor->acquire();
  used->clean_up();
  EXPECT_THROW(floor->release(), std::runtime_error);
  EXPECT_EQ(server_->keys("app/orders/").size(), 1U);
}

TEST_F(EtcdTargetTest, SaysHowTheServerIsSetUp) {
  EXPECT_EQ(setting(*target(), "version").substr(0, 2), "3.");
  EXPECT_EQ(setting(*target(), "members"), "1");
}

TEST(EtcdTargetWithUsersTest, LogsIn) {
  const test::EtcdServer server({.user = test::EtcdUser{}});
  expect_that_its_floor_excludes(*targets_of(server.url("prefix=dlock/")).front());
}

TEST(EtcdTargetByTlsTest, HasFloors) {
  const test::EtcdServer server({.tls = true, .client_certificates = true});
  const auto target = std::move(targets_of(server.url()).front());
  expect_that_its_floor_excludes(*target);
  EXPECT_FALSE(target->operations());
}

TEST(EtcdTargetOfAClusterTest, AddsUpAllMembers) {
  const test::EtcdCluster cluster;
  const auto target = std::move(targets_of(cluster.url()).front());
  EXPECT_EQ(setting(*target, "members"), "3");
  expect_that_operations_are_counted(*target, 2);
  expect_that_distance_takes_time(*target);
}

TEST(EtcdTargetOfNobodyTest, IsSaidToBeUnreachable) {
  rig::Listener nobody;
  nobody.close();
  const std::string port = std::to_string(nobody.port());
  expect_that_it_is_said_to_be_unreachable("etcd://u:hunter2@127.0.0.1:" + port, port);
}

}  // namespace
}  // namespace dlock::bench
