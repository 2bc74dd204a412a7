// A Redis Cluster for a test: masters, each with replicas.
//
//   RedisCluster cluster;
//   Client client = connect(cluster.url());
//   cluster.move_slot(cluster.slot_of("dlock:x"), cluster.other_master("dlock:x"));
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/redis_server.hpp"

namespace dlock::test {

struct RedisClusterConfig {
  std::size_t masters = 3;
  std::size_t replicas = 1;  // of each
  RedisConfig server = {};
};

class RedisCluster {
 public:
  // Waits until all nodes know each other, all slots have a master, and all replicas have their master's data.
  explicit RedisCluster(const RedisClusterConfig& config = {});

  [[nodiscard]] const std::vector<std::unique_ptr<RedisServer>>& nodes() const noexcept { return nodes_; }
  [[nodiscard]] RedisServer& node(std::size_t i) { return *nodes_.at(i); }
  [[nodiscard]] std::vector<std::uint16_t> ports() const { return ports_of(nodes_); }
  // redis-cluster:// with nodes at these ports; with all of them.
  [[nodiscard]] std::string url_at(const std::vector<std::uint16_t>& ports, const std::string& parameters = {}) const;
  [[nodiscard]] std::string url(const std::string& parameters = {}) const { return url_at(ports(), parameters); }

  // By the running nodes' map.
  [[nodiscard]] std::uint16_t slot_of(const std::string& key);
  [[nodiscard]] RedisServer& master_of(const std::string& key);
  [[nodiscard]] RedisServer& other_master(const std::string& key);

  // Its replica, which has all its data, takes its place; returns once all running nodes know.
  void fail_over(RedisServer& master);

  // The three steps of moving a slot to a different master: marks it as moving; moves the existing keys; ends the move.
  void begin_move(std::uint16_t slot, RedisServer& from, RedisServer& to);
  void migrate_keys(std::uint16_t slot, RedisServer& from, RedisServer& to);
  void end_move(std::uint16_t slot, RedisServer& to);
  // All three steps.
  void move_slot(std::uint16_t slot, RedisServer& from, RedisServer& to);

  // Returns once every node answers, none reports a problem, no failover is in progress, and every replica has its
  // master's data. Stopped or killed nodes must be running again.
  void await_settled();

 private:
  [[nodiscard]] std::string unsettled();
  [[nodiscard]] RedisServer& running();
  [[nodiscard]] RedisServer& at_port(const std::string& port);
  [[nodiscard]] static std::string id_of(RedisServer& node);

  const RedisClusterConfig config_;
  std::vector<std::unique_ptr<RedisServer>> nodes_;  // the masters first
};

}  // namespace dlock::test
