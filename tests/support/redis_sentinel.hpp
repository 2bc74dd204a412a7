// Redis Sentinels for a test, and the service that they monitor: a master, replicas, sentinels.
//
//   SentinelService service;
//   Client client = connect(service.url());
//   service.fail_over();
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/redis_server.hpp"

namespace dlock::test {

class RedisSentinel final : public Server {
 public:
  struct Service {
    std::string name = "mymaster";
    std::uint16_t master = 0;
    std::string password = {};  // of the servers
    int down_after_ms = 1000;
  };
  struct Config {
    std::vector<Service> services;
    int quorum = 1;
    std::string password = {};  // of the sentinel's default user
  };

  explicit RedisSentinel(Config config);

  [[nodiscard]] bool serves() const override;
  // On a new connection. Throws std::runtime_error for an error reply.
  RedisReply command(const std::vector<std::string>& words) const;

 private:
  void choose_ports() override;
  [[nodiscard]] std::vector<std::string> configure() override;
  [[nodiscard]] std::string file() const { return directory() + "/sentinel.conf"; }

  Config config_;
};

struct SentinelServiceConfig {
  std::size_t replicas = 2;
  std::size_t sentinels = 3;
  RedisConfig server = {};
  std::string sentinel_password = {};
  int down_after_ms = 1000;
};

class SentinelService {
 public:
  // Waits until the sentinels know each other and the replicas, and these have their master's data.
  explicit SentinelService(const SentinelServiceConfig& config = {});

  [[nodiscard]] RedisServer& server(std::size_t i) { return *servers_.at(i); }
  [[nodiscard]] RedisSentinel& sentinel(std::size_t i) { return *sentinels_.at(i); }
  [[nodiscard]] const std::vector<std::unique_ptr<RedisServer>>& servers() const noexcept { return servers_; }
  [[nodiscard]] const std::vector<std::unique_ptr<RedisSentinel>>& sentinels() const noexcept { return sentinels_; }
  // redis-sentinel:// with sentinels, or proxies in front of them, at these ports; with all of them.
  [[nodiscard]] static std::string url_at(const std::vector<std::uint16_t>& ports, const std::string& parameters = {});
  [[nodiscard]] std::string url(const std::string& parameters = {}) const { return url_at(ports(), parameters); }
  [[nodiscard]] std::vector<std::uint16_t> ports() const { return ports_of(sentinels_); }

  // The current master, by the last sentinel.
  [[nodiscard]] RedisServer& master();
  [[nodiscard]] bool is_master(RedisServer& server) { return &master() == &server; }
  // Sets the time after which sentinels count a silent server as down.
  void set_down_after(int ms);
  // A planned failover; returns once all sentinels know of it.
  void fail_over();
  // Returns once all running sentinels know of so many failovers since they were started.
  void await_failovers(std::size_t count);
  // Returns once every server and sentinel answers, all sentinels name the same master, no failover is in progress, and
  // all other servers are its replicas with its data. Stopped or killed servers must be running again.
  void await_settled();

  // The condition that await_settled() is still waiting for; empty: none.
  [[nodiscard]] std::string unsettled();

 private:
  std::vector<std::unique_ptr<RedisServer>> servers_;  // the first begins as the master
  std::vector<std::unique_ptr<RedisSentinel>> sentinels_;
  std::size_t failovers_ = 0;
};

}  // namespace dlock::test
