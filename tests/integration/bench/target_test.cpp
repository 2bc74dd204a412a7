// Targets on running services. Each service is started at its first use, and kept until the last test of the suite.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <dlock/dlock.hpp>

#include "bench/targets/catalog.hpp"
#include "tests/support/servers.hpp"
#include "torture/rig/scratch_directory.hpp"
#include "torture/rig/socket.hpp"

namespace dlock::bench {
namespace {

struct Service {
  std::function<std::string(std::string parameters)> url;
  std::function<std::string()> content;  // names of everything that it stores
};

// `parameters` are in each URL.
template <class Server>
Service serve(std::shared_ptr<Server> server, std::string (*list)(Server&), const std::string& parameters = "") {
  return {[server, parameters](std::string others) {
            if (!others.empty() && !parameters.empty()) others += "&";
            return server->url(others + parameters);
          },
          [server, list] { return list(*server); }};
}

[[maybe_unused]] std::string sorted(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  std::string text;
  for (const std::string& each : names) text += each + "\n";
  return text;
}

struct Directory {
  rig::ScratchDirectory scratch;
  [[nodiscard]] std::string url(const std::string& parameters) const {
    return "file://" + scratch.path() + (parameters.empty() ? "" : "?") + parameters;
  }
};
std::string files_of(Directory& directory) {
  std::string text;
  for (const auto& each : std::filesystem::recursive_directory_iterator(directory.scratch.path())) {
    text += each.path().string() + "\n";
  }
  return text;
}

#if DLOCK_TEST_WITH_REDIS
std::string keys_of(test::RedisServer& server) {
  std::vector<std::string> keys;
  for (const auto& each : server.command({"KEYS", "*"}).elements) keys.push_back(each.text);
  return sorted(std::move(keys));
}
std::string keys_of_master(test::SentinelService& service) {
  return keys_of(service.master());
}
std::string keys_of_nodes(test::RedisCluster& cluster) {
  std::string text;
  for (const auto& each : cluster.nodes()) text += keys_of(*each);
  return text;
}
#endif
#if DLOCK_TEST_WITH_ZOOKEEPER
std::string nodes_below(test::ZooKeeperClient& client, const std::string& path) {
  std::string text;
  for (const std::string& each : client.children(path).value_or(std::vector<std::string>())) {
    const std::string below = (path == "/" ? "" : path) + "/" + each;
    if (below != "/zookeeper") text += below + "\n" + nodes_below(client, below);
  }
  return text;
}
std::string nodes_of(test::ZooKeeperServer& server) {
  test::ZooKeeperClient client(server.address(), "u:secret");
  return nodes_below(client, "/");
}
// Otherwise a server removes empty containers each minute: those of locks that were released.
constexpr const char* keeps_empty_nodes = "znode.container.checkIntervalMs=86400000";

std::string nodes_of_ensemble(test::ZooKeeperEnsemble& ensemble) {
  return nodes_of(ensemble.server(ensemble.leader()));
}
#endif
#if DLOCK_TEST_WITH_ETCD
std::string keys_of_etcd(test::EtcdServer& server) {
  return sorted(server.keys(""));
}
#endif
#if DLOCK_TEST_WITH_POSTGRES
std::string tables_of(test::PostgresServer& server) {
  return server.value(
      "SELECT string_agg(t::text, ' ' ORDER BY t) FROM (SELECT table_schema, table_name, CASE WHEN column_name = "
      "'name' "
      "THEN query_to_xml(format('SELECT name FROM %I.%I ORDER BY 1', table_schema, table_name), false, true, '')::text "
      "END FROM information_schema.columns WHERE ordinal_position = 1 "
      "AND table_schema NOT IN ('pg_catalog', 'information_schema')) AS t");
}
#endif
#if DLOCK_TEST_WITH_MYSQL
std::string tables_of_mysql(test::MysqlServer& server) {
  server.run("SET SESSION group_concat_max_len = 1000000");
  const std::string all = server.value(
      "SELECT GROUP_CONCAT('SELECT ', QUOTE(CONCAT(table_schema, '.', table_name)), ' AS t, ', IF(column_name = "
      "'name', 'name', 'NULL'), ' AS n FROM `', table_schema, '`.', table_name SEPARATOR ' UNION ALL ') FROM "
      "information_schema.columns WHERE ordinal_position = 1 AND table_schema NOT IN ('information_schema', 'mysql', "
      "'performance_schema', 'sys')");
  const std::string schemas = server.value("SELECT GROUP_CONCAT(schema_name) FROM information_schema.schemata");
  if (all.empty()) return schemas;
  return schemas + " " + server.value("SELECT GROUP_CONCAT(t, '=', n ORDER BY t, n) FROM (" + all + ") AS r");
}
#endif

struct Kind {
  const char* name;
  Service (*start)();
  const char* place;  // a place of the user's for locks, as a parameter of the URL; empty: there are none
  double least;       // operations for an acquire and a release; 0: the service does not count them
  bool distance;      // proxies can stand in front of it
  const char* shown;  // settings of its first strategy, versions up to the first dot, and what it forgets

  friend void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }
};

const Kind kinds[] = {
    {"file", [] { return serve(std::make_shared<Directory>(), &files_of); }, "", 0, false,
     "file system=local; crash=; failover="},
#if DLOCK_TEST_WITH_REDIS
    {"redis",
     [] { return serve(std::make_shared<test::RedisServer>(test::RedisConfig{.append_only = true}), &keys_of); },
     "prefix=app[1]:", 2, true,
     "version=7; appendonly=yes; appendfsync=everysec; save=never; crash=last grants; failover=last grants"},
    {"redis_sentinel",
     [] {
       const test::RedisConfig server{.append_only = true, .lines = {"appendfsync always"}};
       const test::SentinelServiceConfig config{.replicas = 1, .server = server, .sentinel_password = "of-sentinels"};
       return serve(std::make_shared<test::SentinelService>(config), &keys_of_master,
                    "sentinel_password=of-sentinels&replicas_ack=all");
     },
     "prefix=", 2, false,
     "version=7; appendonly=yes; appendfsync=always; save=never; masters=1; replicas of each=1; crash=nothing; "
     "failover=nothing"},
    {"redis_cluster",
     [] {
       return serve(std::make_shared<test::RedisCluster>(test::RedisClusterConfig{.replicas = 0}), &keys_of_nodes);
     },
     "prefix=a{b}c:", 2, false,
     "version=7; appendonly=no; appendfsync=everysec; save=never; masters=3; replicas of each=0; crash=all locks; "
     "failover=last grants"},
#endif
#if DLOCK_TEST_WITH_ZOOKEEPER
    {"zookeeper",
     [] {
       const test::ZooKeeperConfig config{.sync_to_disk = true, .properties = {keeps_empty_nodes}};
       return serve(std::make_shared<test::ZooKeeperServer>(config), &nodes_of, "auth=digest:u:secret");
     },
     "prefix=/app", 2, true, "servers=1; version=3; forceSync=yes; crash=nothing; failover=nothing"},
    {"zookeeper_ensemble",
     [] {
       const test::ZooKeeperConfig config{.tick = std::chrono::milliseconds(200), .properties = {keeps_empty_nodes}};
       return serve(std::make_shared<test::ZooKeeperEnsemble>(config), &nodes_of_ensemble);
     },
     "prefix=", 2, true, "servers=3; version=3; forceSync=no; crash=last grants; failover=nothing"},
#endif
#if DLOCK_TEST_WITH_ETCD
    {"etcd", [] { return serve(std::make_shared<test::EtcdServer>(), &keys_of_etcd); }, "prefix=app/", 2, true,
     "version=3; members=1; crash=nothing; failover=nothing"},
    {"etcd_by_tls",
     [] {
       const test::EtcdConfig config{.tls = true, .client_certificates = true};
       return serve(std::make_shared<test::EtcdServer>(config), &keys_of_etcd);
     },
     "prefix=app/", 0, false, "version=3; members=1; crash=nothing; failover=nothing"},
#endif
#if DLOCK_TEST_WITH_POSTGRES
    // for-update takes one: BEGIN and COMMIT are not counted where they are prepared.
    {"postgresql",
     [] {
       const auto server = std::make_shared<test::PostgresServer>(
           test::PostgresConfig{.max_connections = 200, .lines = {"shared_preload_libraries = 'pg_stat_statements'"}});
       server->run("CREATE EXTENSION pg_stat_statements");
       return serve(server, &tables_of);
     },
     "schema=a\"pp", 1, true,
     "server_version=15; fsync=off; synchronous_commit=on; full_page_writes=off; crash=last grants; "
     "failover=last grants"},
#endif
#if DLOCK_TEST_WITH_MYSQL
    // BEGIN and COMMIT are not counted either.
    {"mysql",
     [] {
       const auto server = std::make_shared<test::MysqlServer>();
       server->run("GRANT ALL ON `dlock\\_bench\\_%`.* TO 'locker'@'127.0.0.1'");
       server->run("GRANT ALL ON app.* TO 'locker'@'127.0.0.1'");
       return serve(server, &tables_of_mysql);
     },
     "schema=app", 2, true,
     "version=10; innodb_flush_log_at_trx_commit=0; log_bin=0; sync_binlog=0; crash=last grants; failover=last grants"},
#endif
};

const std::string test_name = std::string(lock_names) + "test/a";

// A machine that is busy with other tests may stand still for seconds.
std::vector<std::unique_ptr<Target>> targets_of(const std::string& url) {
  constexpr std::chrono::seconds reach_limit{20};
  const char separator = url.find('?') == std::string::npos ? '?' : '&';
  return make_targets(url + separator + "response_timeout=20s", reach_limit);
}

class TargetTest : public testing::TestWithParam<Kind> {
 protected:
  static void TearDownTestSuite() { services_.clear(); }

  static const Service& service() {
    auto& started = services_[GetParam().name];
    if (!started.url) started = GetParam().start();
    return started;
  }

 private:
  static inline std::map<std::string, Service> services_;
};

INSTANTIATE_TEST_SUITE_P(Each, TargetTest, testing::ValuesIn(kinds),
                         [](const auto& row) { return std::string(row.param.name); });

TEST_P(TargetTest, Floor_ExcludesOthersAndDistanceTakesTime) {
  constexpr std::chrono::milliseconds round_trip{10};
  for (const auto& each : targets_of(service().url(""))) {
    SCOPED_TRACE(each->label());
    ASSERT_TRUE(each->has_floor());
    const auto one = each->make_floor(test_name);
    const auto other = each->make_floor(test_name);
    for (int i = 0; i < 3; ++i) {
      one->acquire();
      one->release();
    }
    one->acquire();
    EXPECT_THROW(other->acquire(), std::runtime_error);
    one->release();
    EXPECT_THROW(one->release(), std::runtime_error);
    const auto far = each->at_distance(round_trip);
    ASSERT_EQ(far != nullptr, GetParam().distance);
    const auto next = (far ? far : each)->make_floor(test_name);  // the others may be of no more use
    auto start = std::chrono::steady_clock::now();
    next->acquire();
    EXPECT_GE(std::chrono::steady_clock::now() - start, far ? round_trip : std::chrono::milliseconds(0));
    next->release();
    if (!far) continue;
    const Client client = far->connect(1);
    Lease lease = client.make_lock(test_name).acquire();  // connects
    start = std::chrono::steady_clock::now();
    EXPECT_TRUE(lease.release());
    EXPECT_GE(std::chrono::steady_clock::now() - start, round_trip);
  }
}

// Each acquire and release counts as so many operations; asking for the count is none.
TEST_P(TargetTest, AcquireAndRelease_CountAsOperations) {
  constexpr int times = 50;
  for (const auto& each : targets_of(service().url(""))) {
    SCOPED_TRACE(each->label());
    const auto before = each->operations();
    const auto again = each->operations();
    {
      const Client client = each->connect(1);
      DistributedLock lock = client.make_lock(test_name);
      for (int i = 0; i < times; ++i) ASSERT_TRUE(lock.acquire().release());
    }
    const auto after = each->operations();
    ASSERT_EQ(before && again && after, GetParam().least > 0);
    if (!before) continue;
    EXPECT_EQ(again->carried_out, before->carried_out);
    const std::string kind = GetParam().name;
    EXPECT_TRUE(after->wake_ups || (kind != "zookeeper" && kind != "etcd"));
    if (each->label() == "redis queue") {
      EXPECT_EQ(*after->wake_ups - *again->wake_ups, times);  // messages
    }
    EXPECT_GE(after->carried_out - again->carried_out, GetParam().least * times);
    // Connecting and the heartbeat take a few.
    EXPECT_LT(after->carried_out - again->carried_out, 4 * times);
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
    const auto targets = targets_of(url);
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
      // A table that is in use cannot be dropped.
      if (const std::string& of = each->info().backend; of == "postgresql" || of == "mysql") floors.clear();
    }
    EXPECT_NE(service().content(), before);
    for (const auto& each : targets) each->clean_up();
    EXPECT_EQ(service().content(), before) << place;
    for (Lease& each : held) EXPECT_TRUE(each.release());
  }
}

TEST_P(TargetTest, Settings_AreShown) {
  const auto target = std::move(targets_of(service().url("")).front());
  std::string shown;
  for (const auto& [name, value] : target->info().settings) {
    const std::size_t start = name == "file system" ? value.find(", ") + 2 : 0;  // "ext4, local"
    shown += name + "=" + value.substr(start, name.ends_with("version") ? value.find('.') : value.size()) + "; ";
  }
  EXPECT_EQ(shown + "crash=" + target->info().crash + "; failover=" + target->info().failover, GetParam().shown);
}

// Within the limit and with a word on what cannot be reached, but not on the password.
TEST(UnusableTargetTest, UnreachableService_IsNamed) {
  static constexpr std::chrono::seconds limit{2};
  rig::Listener none;
  none.close();
  const rig::Listener silent;
  const std::string closed_port = std::to_string(none.port());
  const std::string silent_port = std::to_string(silent.port());
  const std::string host = "127.0.0.1:";
  for (const auto& [url, port] : {std::pair{"redis://:hunter2@" + host + closed_port, closed_port},
                                  {"redis://:hunter2@" + host + silent_port, silent_port},
                                  {"redis-cluster://:hunter2@" + host + closed_port, closed_port},
                                  {"zookeeper://" + host + closed_port + "?auth=digest:u:hunter2", closed_port},
                                  {"etcd://u:hunter2@" + host + closed_port, closed_port},
                                  {"postgresql://u:hunter2@" + host + closed_port + "/db", closed_port},
                                  {"mysql://u:hunter2@" + host + silent_port + "/db", silent_port}}) {
    const auto built = backends();
    if (std::find(built.begin(), built.end(), url.substr(0, url.find(':'))) == built.end()) continue;
    const auto start = std::chrono::steady_clock::now();
    EXPECT_THAT([&url = url] { (void)make_targets(url, limit); },
                testing::ThrowsMessage<Error>(
                    testing::AllOf(testing::HasSubstr(port), testing::Not(testing::HasSubstr("hunter2")))));
    EXPECT_LT(std::chrono::steady_clock::now() - start, 10 * limit);  // and not the minutes that the system takes
  }
}

}  // namespace
}  // namespace dlock::bench
