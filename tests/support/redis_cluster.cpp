#include "tests/support/redis_cluster.hpp"

#include <memory>
#include <stdexcept>

#include "tests/support/free_port.hpp"

namespace dlock::test {

RedisCluster::RedisCluster(const RedisClusterConfig& config) : config_(config) {
  constexpr std::size_t slots = 16384;
  const std::size_t count = config.masters * (1 + config.replicas);
  const auto certificate = certificate_if(config.server.tls, config.server.tls_names);
  for (std::size_t i = 0; i < count; ++i) {
    RedisConfig server = config.server;
    server.certificate = certificate;
    server.lines.insert(server.lines.end(),
                        {"cluster-enabled yes", "cluster-config-file nodes.conf", "cluster-node-timeout 1500",
                         "cluster-port " + std::to_string(free_port()), "cluster-replica-validity-factor 0"});
    if (config.server.tls) server.lines.emplace_back("tls-cluster yes");
    if (!config.server.password.empty()) server.lines.push_back("masterauth " + config.server.password);
    nodes_.push_back(std::make_unique<RedisServer>(server));
  }
  for (std::size_t i = 0; i < count; ++i) {
    (void)node(i).command({"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)});
    if (i >= config.masters) continue;
    const std::size_t first = slots * i / config.masters;
    const std::size_t last = slots * (i + 1) / config.masters - 1;
    (void)node(i).command({"CLUSTER", "ADDSLOTSRANGE", std::to_string(first), std::to_string(last)});
  }
  for (std::size_t i = 1; i < count; ++i) {
    const std::string bus = node(i).command({"CONFIG", "GET", "cluster-port"}).elements.at(1).text;
    (void)node(0).command({"CLUSTER", "MEET", "127.0.0.1", std::to_string(node(i).port()), bus});
  }
  test::await_settled("the cluster", [&]() -> std::string {
    for (const auto& each : nodes_) {
      const std::string said = each->command({"CLUSTER", "INFO"}).text;
      if (said.find("cluster_known_nodes:" + std::to_string(count) + "\r") == std::string::npos) return said;
    }
    return {};
  });
  for (std::size_t i = config.masters; i < count; ++i) {
    const std::string master = id_of(node(i % config.masters));
    test::await_settled("the cluster", [&] {
      (void)node(i).command({"CLUSTER", "REPLICATE", master});
      return std::string();
    });
  }
  await_settled();
}

std::string RedisCluster::url_at(const std::vector<std::uint16_t>& ports, const std::string& parameters) const {
  std::string url = nodes_.front()->url_of(addresses_of(ports), parameters);
  return url.insert(url.find("://"), "-cluster");
}

std::uint16_t RedisCluster::slot_of(const std::string& key) {
  return static_cast<std::uint16_t>(running().command({"CLUSTER", "KEYSLOT", key}).integer);
}

std::string RedisCluster::id_of(RedisServer& node) {
  return node.command({"CLUSTER", "MYID"}).text;
}

RedisServer& RedisCluster::running() {
  for (const auto& each : nodes_) {
    if (each->active()) return *each;
  }
  throw std::runtime_error("no node runs");
}

RedisServer& RedisCluster::at_port(const std::string& port) {
  for (const auto& each : nodes_) {
    if (std::to_string(each->port()) == port) return *each;
  }
  throw std::runtime_error("port " + port + " is none of ours");
}

RedisServer& RedisCluster::master_of(const std::string& key) {
  const auto slot = static_cast<std::int64_t>(slot_of(key));
  for (const RedisReply& range : running().command({"CLUSTER", "SLOTS"}).elements) {
    if (range.elements.at(0).integer > slot || range.elements.at(1).integer < slot) continue;
    return at_port(std::to_string(range.elements.at(2).elements.at(1).integer));
  }
  throw std::runtime_error("nobody has slot " + std::to_string(slot));
}

RedisServer& RedisCluster::other_master(const std::string& key) {
  const RedisServer& owner = master_of(key);
  for (const auto& each : nodes_) {
    if (each.get() != &owner && each->active() && each->info("replication", "role") == "master") return *each;
  }
  throw std::runtime_error("there is only one master");
}

void RedisCluster::fail_over(RedisServer& master) {
  for (const auto& each : nodes_) {
    if (!each->active() || each->info("replication", "master_port") != std::to_string(master.port())) continue;
    (void)each->command({"CLUSTER", "FAILOVER"});
    return test::await_settled("the cluster", [&]() -> std::string {
      return each->info("replication", "role") == "master" ? std::string() : "no failover";
    });
  }
  throw std::runtime_error("no replica of it runs");
}

void RedisCluster::begin_move(std::uint16_t slot, RedisServer& from, RedisServer& to) {
  (void)to.command({"CLUSTER", "SETSLOT", std::to_string(slot), "IMPORTING", id_of(from)});
  (void)from.command({"CLUSTER", "SETSLOT", std::to_string(slot), "MIGRATING", id_of(to)});
}

void RedisCluster::migrate_keys(std::uint16_t slot, RedisServer& from, RedisServer& to) {
  while (true) {
    const auto keys = from.command({"CLUSTER", "GETKEYSINSLOT", std::to_string(slot), "100"}).elements;
    if (keys.empty()) return;
    std::vector<std::string> words = {"MIGRATE", "127.0.0.1", std::to_string(to.port()), "", "0", "5000"};
    if (!config_.server.password.empty()) words.insert(words.end(), {"AUTH", config_.server.password});
    words.emplace_back("KEYS");
    for (const RedisReply& key : keys) words.push_back(key.text);
    (void)from.command(words);
  }
}

// The new master first: in between, both name it as the owner.
void RedisCluster::end_move(std::uint16_t slot, RedisServer& to) {
  const std::vector<std::string> words = {"CLUSTER", "SETSLOT", std::to_string(slot), "NODE", id_of(to)};
  (void)to.command(words);
  for (const auto& each : nodes_) {
    if (each->info("replication", "role") == "master") (void)each->command(words);
  }
}

void RedisCluster::move_slot(std::uint16_t slot, RedisServer& from, RedisServer& to) {
  begin_move(slot, from, to);
  migrate_keys(slot, from, to);
  end_move(slot, to);
}

std::string RedisCluster::unsettled() {
  for (const auto& each : nodes_) {
    const std::string name = "node " + std::to_string(each->port());
    const std::string state = each->command({"CLUSTER", "INFO"}).text;
    if (state.find("cluster_state:ok") == std::string::npos) return name + ": " + state;
    const std::string known = each->command({"CLUSTER", "NODES"}).text;
    if (known.find("fail") != std::string::npos || known.find("handshake") != std::string::npos) {
      return name + ": " + known;
    }
    if (count_of(known, "slave") != config_.masters * config_.replicas) return name + ": " + known;
    const auto info = [&](const char* field) { return each->info("replication", field); };
    if (info("role") == "slave" && info("master_link_status") != "up") {
      return name + ": link to its master is " + info("master_link_status");
    }
    if (info("role") == "slave" && at_port(info("master_port")).info("replication", "role") != "master") {
      return name + ": its master is none";
    }
    if (info("role") == "master" && !each->replicated_to(config_.replicas)) {
      return name + ": its replicas do not acknowledge";
    }
  }
  return {};
}

void RedisCluster::await_settled() {
  test::await_settled("the cluster", [this] { return unsettled(); });
}

}  // namespace dlock::test
