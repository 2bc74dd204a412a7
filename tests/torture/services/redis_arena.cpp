#include <chrono>
#include <stdexcept>
#include <utility>

#include "arena.hpp"
#include "backends/redis/requests/keys.hpp"
#include "backends/redis/requests/scripts.hpp"
#include "tests/support/redis_cluster.hpp"
#include "tests/support/redis_sentinel.hpp"
#include "tests/support/redis_server.hpp"

namespace dlock::torture {
namespace {

// master: of a key.
template <class F>
std::vector<std::string> left_of(const std::vector<std::string>& locks, LockKind lock_kind, F&& master) {
  std::vector<std::string> found;
  for (const std::string& lock : locks) {
    const redis::Keys keys = redis::keys_of("dlock:", lock, lock_kind);
    test::RedisServer& server = master(keys.lock);
    // Of several holders those that have died stay until somebody looks, but not for long.
    const auto holders =
        redis::several_hold(lock_kind)
            ? server.command({"ZCOUNT", keys.lock, server.command({"TIME"}).elements.at(0).text + "000", "+inf"})
            : server.command({"EXISTS", keys.lock});
    if (holders.integer != 0) found.push_back("the key " + keys.lock);
    if (server.command({"ZCARD", keys.queue}).integer != 0) found.push_back("entries in " + keys.queue);
  }
  return found;
}

class RedisArena final : public Arena {
 public:
  explicit RedisArena(std::string strategy) : strategy_(std::move(strategy)) {}

  [[nodiscard]] std::vector<std::uint16_t> ports() const override { return {server_.port()}; }
  [[nodiscard]] std::string url(const std::vector<std::uint16_t>& ports) const override {
    return server_.url_at(ports.front(), "strategy=" + strategy_ + "&response_timeout=500ms&connect_timeout=1s");
  }
  [[nodiscard]] std::vector<Fault> faults() override {
    std::vector<Fault> faults = faults_of_server(server_);
    const auto forget = [this] { return said({"SCRIPT", "FLUSH"}); };
    const auto disconnect = [this] { return said({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}); };
    faults.push_back({"scripts forgotten", "scripts", forget, Linger::briefly});
    faults.push_back({"clients disconnected", "clients", disconnect, Linger::briefly});
    return faults;
  }
  [[nodiscard]] std::vector<std::string> leftovers(LockKind lock_kind, const std::vector<std::string>& locks) override {
    return left_of(locks, lock_kind, [this](const std::string&) -> test::RedisServer& { return server_; });
  }

 private:
  // A fault that is over as soon as it was struck; none while the server cannot be spoken to.
  Heal said(const std::vector<std::string>& words) {
    if (!server_.active()) return nullptr;
    (void)server_.connect().command(words);  // a connection of its own: one that is kept may be among the killed
    return [] {};
  }

  std::string strategy_;
  // What it has acknowledged survives it.
  test::RedisServer server_{{.append_only = true}};
};

class RedisFailoverArena final : public FailoverArena {
 public:
  [[nodiscard]] std::vector<std::uint16_t> ports() const override { return {one_.port()}; }
  [[nodiscard]] std::string url(const std::vector<std::uint16_t>& /*ports*/) const override {
    return one_.url_at(way(), "response_timeout=500ms&connect_timeout=1s");
  }
  [[nodiscard]] std::vector<Fault> faults() override {
    return {
        {"replica promoted", "server", [this] { return fail_over(); }, Linger::within_lease, 3, Opens::when_struck}};
  }

 private:
  Heal fail_over() {
    primary_->kill();
    (void)replica_->command({"REPLICAOF", "NO", "ONE"});
    lead_to(replica_->port());
    std::swap(primary_, replica_);
    return [this] {
      replica_->start();
      (void)replica_->command({"REPLICAOF", "127.0.0.1", std::to_string(primary_->port())});
      test::await_settled("the replica", [this]() -> std::string {
        return primary_->replicated_to(1) ? "" : "it does not acknowledge";
      });
    };
  }

  test::RedisServer one_{{.append_only = true}};
  test::RedisServer other_{{.append_only = true, .primary = one_.port()}};
  test::RedisServer* primary_ = &one_;
  test::RedisServer* replica_ = &other_;
};

// Faults of a service of several servers are over when all of it is well again.
template <class Service>
Heal settled(Service& service, std::function<void()> mend) {
  return [&service, mend = std::move(mend)] {
    mend();
    service.await_settled();
  };
}

template <class Server, class Service>
Heal killed(Server& server, Service& service) {
  server.kill();
  return settled(service, [&server] { server.start(); });
}

template <class Server, class Service>
Heal frozen(Server& server, Service& service) {
  server.freeze();
  return settled(service, [&server] { server.thaw(); });
}

// Sentinels look after a master and two replicas. Replication is asynchronous: a grant that was not copied is
// forgotten, and a master that was replaced grants locks until it hears of that. With all_replicas that must not
// happen, as every fault meets servers that are whole.
class SentinelArena final : public Arena {
 public:
  explicit SentinelArena(bool all_replicas) : all_replicas_(all_replicas) {}

  [[nodiscard]] std::vector<std::uint16_t> ports() const override { return service_.ports(); }
  [[nodiscard]] std::string url(const std::vector<std::uint16_t>& ports) const override {
    return test::SentinelService::url_at(
        ports, std::string("response_timeout=500ms&connect_timeout=1s") + (all_replicas_ ? "&replicas_ack=all" : ""));
  }
  [[nodiscard]] std::vector<Fault> faults() override {
    const auto fail_over = [this]() -> Heal {
      try {
        (void)service_.sentinel(0).command({"SENTINEL", "FAILOVER", "mymaster"});
      } catch (const std::runtime_error&) {
        return nullptr;  // the sentinels have one under way, or know no replica that is good enough
      }
      return settled(service_, [] {});
    };
    const auto kill = [this] { return killed(service_.master(), service_); };
    const auto freeze = [this] { return frozen(service_.master(), service_); };
    const auto kill_sentinel = [this] { return killed(next_sentinel(), service_); };
    const auto freeze_sentinel = [this] { return frozen(next_sentinel(), service_); };
    return {{"planned failover", "service", fail_over, Linger::briefly, 2, Opens::while_it_lasts},
            {"master killed", "service", kill, Linger::beyond_lease, 2, Opens::while_it_lasts},
            {"master stopped", "service", freeze, Linger::beyond_lease, 2, Opens::while_it_lasts},
            {"sentinel killed", "service", kill_sentinel},
            {"sentinel stopped", "service", freeze_sentinel}};
  }
  [[nodiscard]] std::vector<std::string> leftovers(LockKind lock_kind, const std::vector<std::string>& locks) override {
    return left_of(locks, lock_kind, [this](const std::string&) -> test::RedisServer& { return service_.master(); });
  }
  void adjust(Setup& setup) const override {
    if (all_replicas_) return;
    setup.known_hole = {.rules = {Rule::exclusion, Rule::growing_tokens, Rule::honest_release},
                        // Sentinels tell each other of a new master every two seconds, and a client asks one a second.
                        .lasts = std::chrono::seconds(3),
                        .why =
                            "a replica that is promoted may not know of the last grants, and a master that was "
                            "replaced makes others until it hears of that"};
  }

 private:
  [[nodiscard]] test::RedisSentinel& next_sentinel() {
    return service_.sentinel(next_++ % service_.sentinels().size());
  }

  bool all_replicas_;
  std::size_t next_ = 0;
  test::SentinelService service_{{.server = {.append_only = true}}};
};

// Three masters, each with a replica; nothing is between them and their clients, to whom they tell their addresses.
// Replication is asynchronous: a grant that was not copied is forgotten.
class ClusterArena final : public Arena {
 public:
  [[nodiscard]] std::vector<std::uint16_t> ports() const override { return {}; }
  [[nodiscard]] std::string url(const std::vector<std::uint16_t>& /*ports*/) const override {
    return cluster_.url("response_timeout=500ms&connect_timeout=1s");
  }
  [[nodiscard]] std::vector<Fault> faults() override {
    const auto kill = [this] { return killed(next_master(), cluster_); };
    const auto freeze = [this] { return frozen(next_master(), cluster_); };
    const auto fail_over = [this]() -> Heal {
      cluster_.fail_over(next_master());
      return settled(cluster_, [] {});
    };
    const auto disconnect = [this] {
      test::RedisServer& server = next_master();
      (void)server.connect().command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
      try {
        (void)server.command({"PING"});
      } catch (const std::runtime_error&) {  // ours was among them; the next call makes another
      }
    };
    // In two steps, between which some of the keys have gone and others have not.
    const auto reshard = [this]() -> Heal {
      const std::string key = next_key();
      test::RedisServer* const from = &cluster_.master_of(key);
      test::RedisServer* const to = &cluster_.other_master(key);
      const std::uint16_t slot = cluster_.slot_of(key);
      cluster_.begin_move(slot, *from, *to);
      return settled(cluster_, [this, slot, from, to] {
        cluster_.migrate_keys(slot, *from, *to);
        cluster_.end_move(slot, *to);
      });
    };
    const auto restart_all = [this]() -> Heal {
      for (const auto& node : cluster_.nodes()) node->stop();
      return settled(cluster_, [this] {
        for (const auto& node : cluster_.nodes()) node->start();
      });
    };
    return {{"slot moved", "cluster", reshard, Linger::within_lease, 3},
            {"master killed", "cluster", kill, Linger::beyond_lease, 2, Opens::when_struck},
            {"master stopped", "cluster", freeze, Linger::beyond_lease, 2, Opens::while_it_lasts},
            {"planned failover", "cluster", fail_over, Linger::briefly, 2, Opens::while_it_lasts},
            brief_fault("clients disconnected", "cluster", disconnect),
            {"all nodes restarted", "cluster", restart_all, Linger::briefly}};
  }
  [[nodiscard]] std::vector<std::string> leftovers(LockKind lock_kind, const std::vector<std::string>& locks) override {
    return left_of(locks, lock_kind,
                   [this](const std::string& key) -> test::RedisServer& { return cluster_.master_of(key); });
  }
  void adjust(Setup& setup) const override {
    setup.known_hole = {.rules = {Rule::exclusion, Rule::honest_release},
                        .lasts = std::chrono::seconds(1),
                        .why = "a replica that is promoted may not know of the last grants"};
  }

 private:
  [[nodiscard]] std::string next_key() { return next_++ % 2 == 0 ? "dlock:torture/a" : "dlock:torture/b"; }
  // Of one of the locks.
  [[nodiscard]] test::RedisServer& next_master() { return cluster_.master_of(next_key()); }

  std::size_t next_ = 0;
  test::RedisCluster cluster_{{.server = {.append_only = true}}};
};

}  // namespace

std::vector<ArenaKind> redis_arenas() {
  const auto queue = [] { return std::make_unique<RedisArena>("queue"); };
  const auto poll = [] { return std::make_unique<RedisArena>("poll"); };
  return {{"redis_queue", queue},
          {"redis_broadcast", [] { return std::make_unique<RedisArena>("broadcast"); }},
          {"redis_poll", poll},
          read_write("redis_read_write", queue),
          semaphore("redis_semaphore", queue),
          read_write("redis_poll_read_write", poll),
          semaphore("redis_poll_semaphore", poll),
          // Shows: hole redis-failover
          {"redis_failover", [] { return std::make_unique<RedisFailoverArena>(); }},
          // Shows: hole redis-cluster
          {"redis_cluster", [] { return std::make_unique<ClusterArena>(); }},
          // Shows: hole redis-sentinel
          {"redis_sentinel", [] { return std::make_unique<SentinelArena>(false); }},
          // Shows: hole redis-sentinel
          {"redis_sentinel_all_replicas", [] { return std::make_unique<SentinelArena>(true); }}};
}

}  // namespace dlock::torture
