#include "tests/servers/servers.hpp"

#include <chrono>
#include <system_error>
#include <thread>
#include <vector>

#include <dlock/dlock.hpp>

#if DLOCK_BENCH_WITH_REDIS
#include "tests/support/redis_cluster.hpp"
#include "tests/support/redis_sentinel.hpp"
#include "tests/support/redis_server.hpp"
#endif
#if DLOCK_BENCH_WITH_ZOOKEEPER
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

#if DLOCK_BENCH_WITH_REDIS
// As the backend's document recommends it: an append-only file, on disk every second.
test::RedisConfig recommended() {
  return {.append_only = true, .lines = {"appendfsync everysec"}};
}

class LocalRedis final : public LocalServer {
 public:
  [[nodiscard]] std::string url() const override { return server_.url(); }

 private:
  test::RedisServer server_{recommended()};
};

class LocalSentinels final : public LocalServer {
 public:
  [[nodiscard]] std::string url() const override { return service_.url(); }

 private:
  test::SentinelService service_{{.replicas = 1, .server = recommended()}};
};

// Without replicas: what is measured is what slots of several servers do to speed.
class LocalCluster final : public LocalServer {
 public:
  [[nodiscard]] std::string url() const override { return cluster_.url(); }

 private:
  test::RedisCluster cluster_{{.replicas = 0, .server = recommended()}};
};
#endif

#if DLOCK_BENCH_WITH_ZOOKEEPER
// Java compiles what is run often. Servers in production did that long ago.
void warm_up(const std::string& url) {
  constexpr std::chrono::seconds length{4};
  constexpr int callers = 64;
  const auto end = std::chrono::steady_clock::now() + length;
  const Client client = connect(url);
  std::vector<std::jthread> threads;
  for (int i = 0; i < callers; ++i) {
    threads.emplace_back([&, lock = client.make_lock("warm-up/" + std::to_string(i))]() mutable {
      std::error_code error;
      while (!error && std::chrono::steady_clock::now() < end) (void)lock.acquire({}, error);
    });
  }
}

class LocalZooKeeper final : public LocalServer {
 public:
  LocalZooKeeper() { warm_up(url()); }
  [[nodiscard]] std::string url() const override { return server_.url(); }

 private:
  test::ZooKeeperServer server_{{.tick = std::chrono::milliseconds(500), .sync_to_disk = true, .for_long = true}};
};
#endif

#if DLOCK_BENCH_WITH_ETCD
// With its default times.
class LocalEtcd final : public LocalServer {
 public:
  [[nodiscard]] std::string url() const override { return server_.url(); }

 private:
  test::EtcdServer server_{{.heartbeat = std::chrono::milliseconds(100), .election = std::chrono::milliseconds(1000)}};
};
#endif

#if DLOCK_BENCH_WITH_POSTGRES
class LocalPostgres final : public LocalServer {
 public:
  LocalPostgres() { server_.run("CREATE EXTENSION pg_stat_statements"); }
  [[nodiscard]] std::string url() const override { return server_.url(); }

 private:
  // A connection for each of 256 callers, twice: dlock's and the floor's.
  test::PostgresServer server_{{.max_connections = 700,
                                .lines = {"fsync = on", "full_page_writes = on", "shared_buffers = 128MB",
                                          "shared_preload_libraries = 'pg_stat_statements'"}}};
};
#endif

template <class Server>
std::unique_ptr<LocalServer> start() {
  return std::make_unique<Server>();
}

}  // namespace

std::vector<LocalServerKind> local_servers() {
  return {
#if DLOCK_BENCH_WITH_REDIS
    {"redis-server", &start<LocalRedis>}, {"Redis Sentinel", &start<LocalSentinels>},
        {"Redis Cluster", &start<LocalCluster>},
#endif
#if DLOCK_BENCH_WITH_ZOOKEEPER
        {"ZooKeeper", &start<LocalZooKeeper>},
#endif
#if DLOCK_BENCH_WITH_ETCD
        {"etcd", &start<LocalEtcd>},
#endif
#if DLOCK_BENCH_WITH_POSTGRES
        {"PostgreSQL", &start<LocalPostgres>},
#endif
  };
}

}  // namespace dlock::bench
