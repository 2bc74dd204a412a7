// Targets of running services. Each service is started at its first use, and kept until the last test of the suite.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "bench/targets/service_target.hpp"
#include "services.hpp"
#include "torture/rig/scratch_directory.hpp"
#include "torture/rig/socket.hpp"
#if DLOCK_BENCH_WITH_REDIS
#include "tests/support/redis_server.hpp"
#endif
#if DLOCK_BENCH_WITH_ZOOKEEPER
#include "tests/support/zookeeper_client.hpp"
#include "tests/support/zookeeper_server.hpp"
#endif
#if DLOCK_BENCH_WITH_ETCD
#include "tests/support/etcd_server.hpp"
#endif
#if DLOCK_BENCH_WITH_POSTGRES
#include "tests/support/postgres_server.hpp"
#endif

namespace dlock::bench {
namespace {

class TargetTest : public testing::TestWithParam<Kind> {
 protected:
  static void TearDownTestSuite() { services_.clear(); }

  static Service& service() {
    auto& started = services_[GetParam().name];
    if (!started) started = GetParam().start();
    return *started;
  }

  static inline std::map<std::string, std::unique_ptr<Service>> services_;
};

INSTANTIATE_TEST_SUITE_P(Each, TargetTest, testing::ValuesIn(kinds()),
                         [](const auto& row) { return std::string(row.param.name); });

TEST_P(TargetTest, Floor_ExcludesOthers) {
  for (const auto& each : targets_of(service().url())) expect_that_its_floor_excludes(*each);
}

// Each acquire and release counts as so many operations; asking for the count is none.
TEST_P(TargetTest, AcquireAndRelease_CountAsOperations) {
  constexpr int times = 50;
  for (const auto& each : targets_of(service().url())) {
    SCOPED_TRACE(each->label());
    const auto before = each->operations();
    const auto again = each->operations();
    acquire_and_release(*each, times);
    const auto after = each->operations();
    ASSERT_EQ(before && again && after, GetParam().least > 0);
    if (!before) continue;
    EXPECT_EQ(again->carried_out, before->carried_out);
    EXPECT_GE(after->carried_out - again->carried_out, GetParam().least * times);
    // Connecting and the heartbeat take a few.
    EXPECT_LT(after->carried_out - again->carried_out, 4 * times);
  }
}

TEST_P(TargetTest, Distance_TakesTime) {
  constexpr std::chrono::milliseconds round_trip{10};
  for (const auto& each : targets_of(service().url())) {
    SCOPED_TRACE(each->label());
    const auto far = each->at_distance(round_trip);
    ASSERT_EQ(far != nullptr, GetParam().distance);
    if (!far) continue;
    EXPECT_EQ(far->label(), each->label());
    const Client client = far->connect(1);
    DistributedLock lock = client.make_lock(test_name);
    Lease lease = lock.acquire();  // connects
    auto start = std::chrono::steady_clock::now();
    EXPECT_TRUE(lease.release());
    EXPECT_GE(std::chrono::steady_clock::now() - start, round_trip);
    const auto floor = far->make_floor(test_name);
    start = std::chrono::steady_clock::now();
    floor->acquire();
    EXPECT_GE(std::chrono::steady_clock::now() - start, round_trip);
    floor->release();
  }
}

// The user's locks stay, held or not, also where the URL names a place of the user's.
TEST_P(TargetTest, CleanUp_RemovesNothingOfTheUsers) {
  for (const std::string& place : std::set<std::string>{"", GetParam().place}) {
    const std::string url = service().url(place);
    const Client user = connect(url);
    (void)user.initialize();
    std::vector<Lease> held;
    for (const std::string name : {"orders", "dlock-bench", "dlock-bench-1"}) {
      held.push_back(user.make_lock(name).acquire());
      if (user.capabilities().read_write_locks)
        held.push_back(user.make_read_write_lock(name + "-rw").acquire_shared());
      ASSERT_TRUE(user.make_lock(name + "-used").acquire().release());
    }
    const std::string before = service().content();
    const Targets targets = targets_of(url);
    std::vector<std::unique_ptr<Floor>> floors;
    for (const auto& each : targets) {
      const Client client = each->connect(5);
      for (const std::string name : {"a", "b", "c", "d", "e"}) {
        ASSERT_TRUE(client.make_lock(lock_names + name).acquire().release());
      }
      if (client.capabilities().read_write_locks) (void)client.make_read_write_lock(test_name).acquire_shared();
      if (client.capabilities().semaphores) (void)client.make_semaphore(test_name, 2).acquire();
      floors.push_back(each->make_floor(test_name));
      floors.back()->acquire();
      if (each->info().backend == "postgresql") floors.clear();  // a table that is in use cannot be dropped
    }
    EXPECT_NE(service().content(), before);
    for (const auto& each : targets) each->clean_up();
    EXPECT_EQ(service().content(), before) << place;
    for (Lease& each : held) EXPECT_TRUE(each.release());
  }
}

TEST_P(TargetTest, Settings_AreShown) {
  const auto target = target_of(service().url());
  std::string shown;
  for (const auto& [name, value] : target->info().settings) {
    const std::size_t start = name == "file system" ? value.find(", ") + 2 : 0;  // "ext4, local"
    shown += name + "=" + value.substr(start, name.ends_with("version") ? value.find('.') : value.size()) + "; ";
  }
  EXPECT_EQ(shown + "crash=" + target->info().crash + "; failover=" + target->info().failover, GetParam().shown);
}

// --- Services that cannot be used ------------------------------------------------------------------------------------

bool is_built(const std::string& url) {
  const auto built = backends();
  return std::find(built.begin(), built.end(), url.substr(0, url.find(':'))) != built.end();
}

// Within the limit and with a word on what cannot be reached, but not on the password.
void expect_that_it_is_said_to_be_unreachable(const std::string& url, const std::string& said) {
  constexpr std::chrono::seconds limit{2};
  const auto start = std::chrono::steady_clock::now();
  try {
    (void)make_targets(url, limit);
    FAIL() << url;
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.code(), errc::unavailable) << text;
    EXPECT_NE(text.find(said), std::string::npos) << text;
    EXPECT_EQ(text.find("hunter2"), std::string::npos) << text;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 10 * limit);  // and not the minutes that the system takes
}

TEST(UnusableTargetTest, UnreachableService_IsNamed) {
  rig::Listener nobody;
  nobody.close();
  const std::string port = std::to_string(nobody.port());
  for (const std::string& url :
       {"redis://:hunter2@127.0.0.1:" + port, "redis-cluster://:hunter2@127.0.0.1:" + port,
        "zookeeper://127.0.0.1:" + port + "?auth=digest:u:hunter2", "etcd://u:hunter2@127.0.0.1:" + port,
        "postgresql://u:hunter2@127.0.0.1:" + port + "/db"}) {
    if (is_built(url)) expect_that_it_is_said_to_be_unreachable(url, port);
  }
}

#if DLOCK_BENCH_WITH_REDIS

// --- Redis -----------------------------------------------------------------------------------------------------------

// With `queue`, a release publishes once; with `poll`, nothing is published; receivers of `broadcast` are not counted.
TEST(RedisTargetTest, Messages_AreCountedByStrategy) {
  const test::RedisServer server;
  for (const auto& each : targets_of(server.url())) {
    const auto before = each->operations();
    acquire_and_release(*each, 7);
    const auto after = each->operations();
    ASSERT_EQ(before->wake_ups.has_value(), each->info().strategy != "broadcast");
    const double woken = after->wake_ups.value_or(0) - before->wake_ups.value_or(0);
    EXPECT_EQ(woken, each->info().strategy == "queue" ? 7 : 0);
    EXPECT_EQ(each->most_locks(), 0U);
    EXPECT_GT(each->most_floors(), 256U) << "connections are left for others";
  }
}

TEST(RedisTargetTest, WithoutTheRightToAsk_NothingIsCounted) {
  const test::RedisServer server({.user = test::RedisUser()});
  const auto target = target_of(server.url("prefix=dlock:"));
  EXPECT_FALSE(target->operations());
  EXPECT_TRUE(target->info().settings.empty());
  EXPECT_EQ(target->info().crash, "not known");
}

TEST(RedisTargetTest, UnresponsiveServer_IsGivenUp) {
  const rig::Listener silent;
  const std::string port = std::to_string(silent.port());
  expect_that_it_is_said_to_be_unreachable("redis://:hunter2@127.0.0.1:" + port, port);
}

TEST(RedisTargetTest, UnreachableHost_HasNoProxy) {
  rig::Listener nobody;
  nobody.close();
  const auto target = make_redis_target(rig::UrlText("redis://localhost:" + std::to_string(nobody.port())), "poll");
  EXPECT_THROW((void)target->at_distance(std::chrono::milliseconds(1)), std::runtime_error);
}

#endif
#if DLOCK_BENCH_WITH_ZOOKEEPER

// --- ZooKeeper -------------------------------------------------------------------------------------------------------

TEST(ZooKeeperTargetTest, FiredWatches_AreCounted) {
  const test::ZooKeeperServer server;
  const auto target = target_of(server.url("strategy=sequential"));
  const Client one = target->connect(1);
  const Client other = target->connect(1);
  DistributedLock held = one.make_lock(test_name);
  DistributedLock wanted = other.make_lock(test_name);
  Lease lease = held.acquire();
  const double before = target->operations()->wake_ups.value();
  const auto watches = server.figure("zk_watch_count");
  std::jthread waiter([&] { (void)wanted.acquire(); });
  while (server.figure("zk_watch_count") == watches) std::this_thread::yield();
  EXPECT_TRUE(lease.release());
  waiter.join();
  EXPECT_GE(target->operations()->wake_ups.value() - before, 1);
}

TEST(ZooKeeperTargetTest, ChrootAndUnlimitedConnections_AreUsed) {
  const test::ZooKeeperServer server({.lines = {"maxClientCnxns=0"}});
  test::ZooKeeperClient client(server.address());
  client.create_all("/deep/root");
  const auto target = target_of(server.url("/deep/root?strategy=ephemeral"));
  EXPECT_EQ(target->most_floors(), 0U);
  expect_that_its_floor_excludes(*target);
  target->clean_up();
  EXPECT_TRUE(client.children("/deep/root")->empty());
}

TEST(ZooKeeperTargetTest, LimitedConnections_AreLeftForOthers) {
  const test::ZooKeeperServer server({.lines = {"maxClientCnxns=100"}});
  EXPECT_EQ(target_of(server.url("strategy=ephemeral"))->most_floors(), 80U);
}

TEST(ZooKeeperTargetTest, WithoutTheRightToAsk_NothingIsCounted) {
  const test::ZooKeeperServer server({.lines = {"maxClientCnxns=30", "4lw.commands.whitelist=srvr"}});
  const auto target = target_of(server.url("strategy=ephemeral"));
  EXPECT_FALSE(target->operations());
  EXPECT_EQ(target->info().settings, (Settings{{"servers", "1"}}));
  EXPECT_EQ(target->most_floors(), 40U) << "of the usual number";
  EXPECT_EQ(target->info().crash, "not known");
}

#endif
#if DLOCK_BENCH_WITH_ETCD

// --- etcd ------------------------------------------------------------------------------------------------------------

TEST(EtcdTargetTest, EventsThatWake_AreCounted) {
  const test::EtcdServer server;
  const auto watched = target_of(server.url());
  const Client one = watched->connect(1);
  const Client other = watched->connect(1);
  DistributedLock held = one.make_lock(test_name);
  DistributedLock wanted = other.make_lock(test_name);
  Lease lease = held.acquire();
  const double before = watched->operations()->wake_ups.value();
  std::jthread waiter([&] { (void)wanted.acquire(); });
  while (server.figure("etcd_debugging_mvcc_watcher_total") != 1) std::this_thread::yield();
  EXPECT_TRUE(lease.release());
  waiter.join();
  EXPECT_GE(watched->operations()->wake_ups.value() - before, 1);
}

TEST(EtcdTargetTest, Floor_LogsIn) {
  const test::EtcdServer server({.user = test::EtcdUser{}});
  expect_that_its_floor_excludes(*target_of(server.url("prefix=dlock/")));
}

#endif
#if DLOCK_BENCH_WITH_POSTGRES

// --- PostgreSQL ------------------------------------------------------------------------------------------------------

TEST(PostgresTargetTest, WithoutTheRightToCreateTables_HasNoFloor) {
  test::PostgresServer server;
  (void)connect(server.url("schema=shared")).initialize();
  server.run("CREATE ROLE guest LOGIN PASSWORD 'hunter2'");
  server.run("GRANT USAGE ON SCHEMA shared TO guest");
  server.run("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA shared TO guest");
  const auto target = target_of(server.url_as("guest", "hunter2", "schema=shared&strategy=table"));
  EXPECT_FALSE(target->has_floor());
  EXPECT_EQ(target->info().url.find("hunter2"), std::string::npos);
  target->clean_up();
}

TEST(PostgresTargetTest, WrongPassword_IsNotShown) {
  const test::PostgresServer server;
  try {
    (void)targets_of(server.url_as("locker", "hunter2"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), errc::access_denied);
    EXPECT_EQ(std::string(error.what()).find("hunter2"), std::string::npos);
  }
}

TEST(PostgresTargetTest, Connections_LimitLocksAndFloors) {
  const test::PostgresServer server({.max_connections = 200});
  for (const auto& each : targets_of(server.url())) {
    SCOPED_TRACE(each->label());
    const bool takes_connections = each->info().strategy == "for-update" || each->info().strategy == "advisory";
    EXPECT_FALSE(each->operations()) << "without the extension";
    EXPECT_GT(each->most_floors(), 40U);
    EXPECT_LT(each->most_floors(), 200U);
    EXPECT_EQ(each->most_locks() != 0, takes_connections);
    EXPECT_LE(each->most_locks() + (takes_connections ? each->most_floors() : 0), 200U);
    EXPECT_EQ(each->info().failover, takes_connections ? "all locks" : "last grants");
    EXPECT_EQ(each->info().crash, takes_connections ? "all locks" : "last grants") << "fsync is off";
  }
  EXPECT_EQ(target_of(server.url("strategy=table&durability=unlogged"))->info().failover, "all locks");
}

TEST(PostgresTargetTest, AllLocksOfAClient_AreHeldAtOnce) {
  const test::PostgresServer server;
  const auto target = target_of(server.url("strategy=for-update"));
  constexpr std::size_t count = 20;
  const Client client = target->connect(count);
  std::vector<Lease> leases;
  for (std::size_t i = 0; i < count; ++i) {
    auto lease = client.make_lock(test_name + std::to_string(i)).try_acquire();
    ASSERT_TRUE(lease) << i;
    leases.push_back(std::move(*lease));
  }
}

// libpq does not know all of them, and without a host it would use a Unix socket.
TEST(PostgresTargetTest, Floor_TakesUrlsOfDlock) {
  const test::PostgresServer server;
  const rig::ScratchDirectory directory;
  std::ofstream(directory.path() + "/password") << test::PostgresServer::password << "\n";
  const auto target = target_of("postgresql:///locks?user=locker&port=" + std::to_string(server.port()) +
                                "&strategy=advisory&lease=10s&label=a&connect_timeout=5500ms&max_connections=20"
                                "&durability=async&password_file=" +
                                directory.path() + "/password");
  EXPECT_EQ(target->most_locks(), 20U);
  expect_that_its_floor_excludes(*target);
}

#endif

}  // namespace
}  // namespace dlock::bench
