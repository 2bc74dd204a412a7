// Redis Sentinels of a test's own, and a service that they look after: a master, replicas, sentinels.
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
  // Waits until the sentinels know of each other and of the replicas, and these have their master's data.
  explicit SentinelService(const SentinelServiceConfig& config = {});

  [[nodiscard]] RedisServer& server(std::size_t i) { return *servers_.at(i); }
  [[nodiscard]] RedisSentinel& sentinel(std::size_t i) { return *sentinels_.at(i); }
  [[nodiscard]] const std::vector<std::unique_ptr<RedisServer>>& servers() const noexcept { return servers_; }
  [[nodiscard]] const std::vector<std::unique_ptr<RedisSentinel>>& sentinels() const noexcept { return sentinels_; }
  // redis-sentinel:// with sentinels, or proxies in front of them, at these ports; with all of them.
  [[nodiscard]] static std::string url_at(const std::vector<std::uint16_t>& ports, const std::string& parameters = {});
  [[nodiscard]] std::string url(const std::string& parameters = {}) const { return url_at(ports(), parameters); }
  [[nodiscard]] std::vector<std::uint16_t> ports() const;

  // Who is the master, as the last sentinel says.
  [[nodiscard]] RedisServer& master();
  [[nodiscard]] bool is_master(RedisServer& server) { return &master() == &server; }
  // How long a server must not answer before sentinels count it as down, from now on.
  void set_down_after(int ms);
  // A planned failover; returns when all sentinels have heard of it.
  void fail_over();
  // Returns when all sentinels that run have heard of so many failovers since they were started.
  void await_failovers(std::size_t count);
  // Returns when every server and sentinel answers, all sentinels name the same master and no failover is under way,
  // and all others are its replicas and have its data. Whoever was stopped or killed has to be running again.
  void await_settled();

  // Says what is missing for that; empty: nothing.
  [[nodiscard]] std::string unsettled();

 private:
  std::vector<std::unique_ptr<RedisServer>> servers_;  // the first begins as the master
  std::vector<std::unique_ptr<RedisSentinel>> sentinels_;
  std::size_t failovers_ = 0;
};

}  // namespace dlock::test
