#include "services.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "torture/rig/scratch_directory.hpp"
#if DLOCK_BENCH_WITH_REDIS
#include "tests/support/redis_cluster.hpp"
#include "tests/support/redis_sentinel.hpp"
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

// A server, and how its content is listed.
template <class Server, auto list>
class Running final : public Service {
 public:
  template <class... Arguments>
  explicit Running(const std::string& parameters, Arguments&&... arguments)
      : server_(std::forward<Arguments>(arguments)...), parameters_(parameters) {}

  [[nodiscard]] std::string url(const std::string& parameters) const override {
    const bool both = !parameters.empty() && !parameters_.empty();
    return server_.url(parameters + (both ? "&" : "") + parameters_);
  }
  [[nodiscard]] std::string content() override { return list(server_); }
  [[nodiscard]] Server& server() { return server_; }

 private:
  Server server_;
  std::string parameters_;
};

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

[[maybe_unused]] std::string sorted(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  std::string text;
  for (const std::string& each : names) text += each + "\n";
  return text;
}

#if DLOCK_BENCH_WITH_REDIS
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

#if DLOCK_BENCH_WITH_ZOOKEEPER
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
std::string nodes_of_ensemble(test::ZooKeeperEnsemble& ensemble) {
  return nodes_of(ensemble.server(ensemble.leader()));
}
#endif

#if DLOCK_BENCH_WITH_ETCD
std::string keys_of_etcd(test::EtcdServer& server) {
  return sorted(server.keys(""));
}
std::string keys_of_cluster(test::EtcdCluster& cluster) {
  return sorted(cluster.server(0).keys(""));
}
#endif

#if DLOCK_BENCH_WITH_POSTGRES
std::string tables_of(test::PostgresServer& server) {
  return server.value(
      "SELECT string_agg(t::text, ' ' ORDER BY t) FROM (SELECT table_schema, table_name, CASE WHEN column_name = "
      "'name' "
      "THEN query_to_xml(format('SELECT name FROM %I.%I ORDER BY 1', table_schema, table_name), false, true, '')::text "
      "END FROM information_schema.columns WHERE ordinal_position = 1 "
      "AND table_schema NOT IN ('pg_catalog', 'information_schema')) AS t");
}
#endif

template <class Server, auto list>
std::unique_ptr<Service> start() {
  return std::make_unique<Running<Server, list>>("");
}

#if DLOCK_BENCH_WITH_REDIS
std::unique_ptr<Service> start_redis() {
  return std::make_unique<Running<test::RedisServer, keys_of>>("", test::RedisConfig{.append_only = true});
}
std::unique_ptr<Service> start_sentinels() {
  const test::RedisConfig server{.append_only = true, .lines = {"appendfsync always"}};
  return std::make_unique<Running<test::SentinelService, keys_of_master>>(
      "sentinel_password=of-sentinels&replicas_ack=all",
      test::SentinelServiceConfig{.replicas = 1, .server = server, .sentinel_password = "of-sentinels"});
}
std::unique_ptr<Service> start_cluster() {
  return std::make_unique<Running<test::RedisCluster, keys_of_nodes>>("", test::RedisClusterConfig{.replicas = 0});
}
#endif
#if DLOCK_BENCH_WITH_ZOOKEEPER
std::unique_ptr<Service> start_zookeeper() {
  return std::make_unique<Running<test::ZooKeeperServer, nodes_of>>("auth=digest:u:secret",
                                                                    test::ZooKeeperConfig{.sync_to_disk = true});
}
#endif
#if DLOCK_BENCH_WITH_ETCD
std::unique_ptr<Service> start_etcd_by_tls() {
  return std::make_unique<Running<test::EtcdServer, keys_of_etcd>>(
      "", test::EtcdConfig{.tls = true, .client_certificates = true});
}
#endif
#if DLOCK_BENCH_WITH_POSTGRES
std::unique_ptr<Service> start_postgres() {
  auto service = std::make_unique<Running<test::PostgresServer, tables_of>>(
      "", test::PostgresConfig{.max_connections = 200, .lines = {"shared_preload_libraries = 'pg_stat_statements'"}});
  service->server().run("CREATE EXTENSION pg_stat_statements");
  return service;
}
#endif

}  // namespace

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
    {"file", &start<Directory, files_of>, "", 0, false, "file system=local; crash=; failover="},
#if DLOCK_BENCH_WITH_REDIS
    {"redis", &start_redis, "prefix=app[1]:", 2, true,
     "version=7; appendonly=yes; appendfsync=everysec; save=never; crash=last grants; failover=last grants"},
    {"redis_sentinel", &start_sentinels, "prefix=", 2, false,
     "version=7; appendonly=yes; appendfsync=always; save=never; masters=1; replicas of each=1; crash=nothing; "
     "failover=nothing"},
    {"redis_cluster", &start_cluster, "prefix=a{b}c:", 2, false,
     "version=7; appendonly=no; appendfsync=everysec; save=never; masters=3; replicas of each=0; crash=all locks; "
     "failover=last grants"},
#endif
#if DLOCK_BENCH_WITH_ZOOKEEPER
    {"zookeeper", &start_zookeeper, "prefix=/app", 2, true,
     "servers=1; version=3; forceSync=yes; crash=nothing; failover=nothing"},
    {"zookeeper_ensemble", &start<test::ZooKeeperEnsemble, nodes_of_ensemble>, "prefix=", 2, true,
     "servers=3; version=3; forceSync=no; crash=last grants; failover=nothing"},
#endif
#if DLOCK_BENCH_WITH_ETCD
    {"etcd", &start<test::EtcdServer, keys_of_etcd>, "prefix=app/", 2, true,
     "version=3; members=1; crash=nothing; failover=nothing"},
    {"etcd_cluster", &start<test::EtcdCluster, keys_of_cluster>, "prefix=", 2, true,
     "version=3; members=3; crash=nothing; failover=nothing"},
    {"etcd_by_tls", &start_etcd_by_tls, "prefix=app/", 0, false,
     "version=3; members=1; crash=nothing; failover=nothing"},
#endif
#if DLOCK_BENCH_WITH_POSTGRES
    // for-update takes one: BEGIN and COMMIT are not counted where they are prepared.
    {"postgresql", &start_postgres, "schema=a\"pp", 1, true,
     "server_version=15; fsync=off; synchronous_commit=on; full_page_writes=off; crash=last grants; "
     "failover=last grants"},
#endif
  };
  return all;
}

}  // namespace dlock::bench
