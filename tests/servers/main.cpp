// Runs a command with "--url URL" appended for each lock service that can be measured on this machine: memory, files,
// and servers that it starts, and stops at the end.
//
//   bench_servers dlock bench --quick
#include <spawn.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/magic.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <dlock/dlock.hpp>

#include "tests/support/servers.hpp"
#include "torture/rig/scratch_directory.hpp"

namespace dlock::bench {
namespace {

// A server that is stopped with the object.
struct Running {
  std::shared_ptr<void> server;
  std::string url;
};

template <class Server, class... Config>
Running start(Config&&... config) {
  const auto server = std::make_shared<Server>(std::forward<Config>(config)...);
  return {server, server->url()};
}

// Java compiles frequent code at run time; servers in production have done that long ago.
[[maybe_unused]] void warm_up(const std::string& url) {
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

struct LocalServer {
  const char* name;
  // Starts it and waits until it serves.
  Running (*start)();
};

// They wait for the disk, as in production.
const LocalServer local_servers[] = {
#if DLOCK_TEST_WITH_REDIS
    // As the backend's document recommends: an append-only file, written to disk every second.
    {"redis-server",
     [] {
       return start<test::RedisServer>(test::RedisConfig{.append_only = true, .lines = {"appendfsync everysec"}});
     }},
    {"Redis Sentinel",
     [] {
       return start<test::SentinelService>(test::SentinelServiceConfig{
           .replicas = 1, .server = {.append_only = true, .lines = {"appendfsync everysec"}}});
     }},
    // Without replicas: this measures how slots on several servers affect the speed.
    {"Redis Cluster",
     [] {
       return start<test::RedisCluster>(
           test::RedisClusterConfig{.replicas = 0, .server = {.append_only = true, .lines = {"appendfsync everysec"}}});
     }},
#endif
#if DLOCK_TEST_WITH_ZOOKEEPER
    {"ZooKeeper",
     [] {
       Running running = start<test::ZooKeeperServer>(
           test::ZooKeeperConfig{.tick = std::chrono::milliseconds(500), .sync_to_disk = true, .for_long = true});
       warm_up(running.url);
       return running;
     }},
#endif
#if DLOCK_TEST_WITH_ETCD
    // With its default times.
    {"etcd",
     [] {
       return start<test::EtcdServer>(
           test::EtcdConfig{.heartbeat = std::chrono::milliseconds(100), .election = std::chrono::milliseconds(1000)});
     }},
#endif
#if DLOCK_TEST_WITH_POSTGRES
    // A connection for each of 256 callers, for dlock and for the floor.
    {"PostgreSQL",
     [] {
       const auto server = std::make_shared<test::PostgresServer>(
           test::PostgresConfig{.max_connections = 700,
                                .lines = {"fsync = on", "full_page_writes = on", "shared_buffers = 128MB",
                                          "shared_preload_libraries = 'pg_stat_statements'"}});
       server->run("CREATE EXTENSION pg_stat_statements");
       return Running{server, server->url()};
     }},
#endif
#if DLOCK_TEST_WITH_MYSQL
    {"MariaDB",
     [] {
       const auto server = std::make_shared<test::MysqlServer>(test::MysqlConfig{
           .options = {"--max-connections=700", "--innodb-flush-log-at-trx-commit=1", "--innodb-flush-method=fsync",
                       "--innodb-buffer-pool-size=128M", "--innodb-log-file-size=96M"}});
       server->run("GRANT ALL ON *.* TO 'locker'@'127.0.0.1'");
       return Running{server, server->url()};
     }},
#endif
};

// Waiting for a disk requires one.
void keep_off_memory() {
  struct statfs temporary = {};
  if (std::getenv("TMPDIR") != nullptr || ::statfs("/tmp", &temporary) != 0) return;
  if (temporary.f_type == TMPFS_MAGIC) (void)::setenv("TMPDIR", "/var/tmp", 1);  // fails only if memory runs out
}

int status_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// The signals that end a program, blocked in this thread and in those that it starts from now on; run() reads them.
class EndingSignals {
 public:
  EndingSignals() {
    ::sigemptyset(&ending_);
    for (const int each : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&ending_, each);
    awaited_ = ending_;
    ::sigaddset(&awaited_, SIGCHLD);
    (void)::pthread_sigmask(SIG_BLOCK, &awaited_, nullptr);  // fails for wrong arguments only
  }

  // A signal that has arrived since; 0: none.
  [[nodiscard]] int arrived() const {
    constexpr timespec at_once{};
    const int signal = ::sigtimedwait(&ending_, nullptr, &at_once);
    return signal > 0 ? signal : 0;
  }
  // Starts command[0], found in PATH, with this process's terminal and files, and waits for it. Passes signals that ask
  // for the end on to it, unless the terminal sent them, which also sends them to the command. Returns the status as
  // shells do: 128 + signal, 127 if it cannot be started.
  [[nodiscard]] int run(std::vector<std::string> command) const {
    std::vector<char*> arguments;
    for (std::string& each : command) arguments.push_back(each.data());
    arguments.push_back(nullptr);
    posix_spawnattr_t attributes;
    (void)::posix_spawnattr_init(&attributes);
    sigset_t none;
    ::sigemptyset(&none);
    (void)::posix_spawnattr_setsigmask(&attributes, &none);
    (void)::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    pid_t child = -1;
    const int failure = ::posix_spawnp(&child, arguments[0], nullptr, &attributes, arguments.data(), environ);
    (void)::posix_spawnattr_destroy(&attributes);
    if (failure != 0) {
      std::fprintf(stderr, "%s: %s\n", arguments[0], std::strerror(failure));
      return 127;
    }
    for (;;) {
      int status = 0;
      const pid_t ended = ::waitpid(child, &status, WNOHANG);
      if (ended == child) return status_of(status);
      if (ended < 0 && errno != EINTR) return 127;
      siginfo_t info{};
      const int signal = ::sigwaitinfo(&awaited_, &info);
      if (signal > 0 && signal != SIGCHLD && info.si_code != SI_KERNEL) (void)::kill(child, signal);
    }
  }

 private:
  sigset_t ending_{};
  sigset_t awaited_{};  // and the end of a child
};

int run(std::vector<std::string> command) {
  const EndingSignals signals;
  keep_off_memory();
  const rig::ScratchDirectory files;
  std::vector<Running> servers;
  for (const LocalServer& each : local_servers) {
    if (const int signal = signals.arrived(); signal != 0) return 128 + signal;
    std::fprintf(stderr, "starting %s\n", each.name);
    try {
      servers.push_back(each.start());
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s will not be measured: %s\n", each.name, error.what());
    }
  }
  if (const int signal = signals.arrived(); signal != 0) return 128 + signal;
  command.insert(command.end(), {"--url", "memory://", "--url", "file://" + files.path()});
  for (const Running& each : servers) command.insert(command.end(), {"--url", each.url});
  return signals.run(std::move(command));
}

}  // namespace
}  // namespace dlock::bench

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: bench_servers COMMAND [ARGUMENT...]\n");
    return 2;
  }
  try {
    return dlock::bench::run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_servers: %s\n", error.what());
    return 1;
  }
}
