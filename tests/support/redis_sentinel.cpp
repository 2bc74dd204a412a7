#include "tests/support/redis_sentinel.hpp"

#include <csignal>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "tests/support/free_port.hpp"
#include "tests/support/settling.hpp"
#include "torture/rig/hang_guard.hpp"

namespace dlock::test {

namespace {

constexpr int most_starts = 10;

void await_output(const rig::ChildProcess& process, const std::string& text, std::size_t times) {
  const auto condition = [&](const std::string& output) { return count_of(output, text) >= times; };
  if (!process.wait_until(condition, rig::hang_guard)) {
    throw std::runtime_error("no \"" + text + "\" in what this has printed:\n" + process.output());
  }
}

}  // namespace

RedisSentinel::RedisSentinel(Config config) : config_(std::move(config)) {
  for (int i = 0; i < most_starts; ++i) {
    port_ = free_port();
    write_configuration();
    if (try_to_start()) return;
  }
  throw std::runtime_error("redis-sentinel does not start\n" + process_->output());
}

void RedisSentinel::write_configuration() const {
  std::ofstream file(directory_.path() + "/sentinel.conf");
  file << "bind 127.0.0.1\nprotected-mode no\ndaemonize no\nlogfile \"\"\ndir " << directory_.path() << "\nport "
       << port_ << "\n";
  if (!config_.password.empty()) {
    file << "requirepass " << config_.password << "\nsentinel sentinel-pass " << config_.password << "\n";
  }
  for (const Service& service : config_.services) {
    file << "sentinel monitor " << service.name << " 127.0.0.1 " << service.master << " " << config_.quorum
         << "\nsentinel down-after-milliseconds " << service.name << " " << service.down_after_ms
         << "\nsentinel failover-timeout " << service.name << " 3000\n";
    if (!service.password.empty()) file << "sentinel auth-pass " << service.name << " " << service.password << "\n";
  }
  if (!file.flush()) throw std::runtime_error("cannot write " + directory_.path() + "/sentinel.conf");
}

bool RedisSentinel::try_to_start() {
  process_ = std::make_unique<rig::ChildProcess>(
      std::vector<std::string>{"redis-server", directory_.path() + "/sentinel.conf", "--sentinel"});
  return process_->wait_for_output("+monitor master " + config_.services.back().name);
}

void RedisSentinel::start() {
  if (!try_to_start()) throw std::runtime_error("redis-sentinel does not start again\n" + process_->output());
}

void RedisSentinel::kill() {
  process_->signal(SIGKILL);
  (void)process_->wait();
}

RedisReply RedisSentinel::command(const std::vector<std::string>& words) const {
  RedisConnection connection(rig::Endpoint::loopback(port_));
  if (!config_.password.empty()) (void)connection.command({"AUTH", config_.password});
  RedisReply reply = connection.command(words);
  if (reply.is_error()) throw std::runtime_error(words.front() + ": " + reply.text);
  return reply;
}

SentinelService::SentinelService(const SentinelServiceConfig& config) {
  servers_.push_back(std::make_unique<RedisServer>(config.server));
  RedisConfig replica = config.server;
  replica.primary = servers_.front()->port();
  for (std::size_t i = 0; i < config.replicas; ++i) servers_.push_back(std::make_unique<RedisServer>(replica));
  for (std::size_t i = 0; i < config.replicas; ++i) {
    await_output(servers_[i + 1]->process(), "MASTER <-> REPLICA sync: Finished with success", 1);
  }
  test::await_settled("the service", [&]() -> std::string {
    return servers_.front()->replicated_to(config.replicas) ? "" : "the replicas do not acknowledge";
  });
  const RedisSentinel::Service service{.master = servers_.front()->port(), .password = config.server.password};
  for (std::size_t i = 0; i < config.sentinels; ++i) {
    sentinels_.push_back(
        std::make_unique<RedisSentinel>(RedisSentinel::Config{.services = {service},
                                                              .quorum = static_cast<int>(config.sentinels / 2 + 1),
                                                              .password = config.sentinel_password}));
  }
  for (const auto& sentinel : sentinels_) {
    await_output(sentinel->process(), "+slave slave", config.replicas);
    await_output(sentinel->process(), "+sentinel sentinel", config.sentinels - 1);
  }
}

std::vector<std::uint16_t> SentinelService::ports() const {
  std::vector<std::uint16_t> ports;
  for (const auto& sentinel : sentinels_) ports.push_back(sentinel->port());
  return ports;
}

std::string SentinelService::url_at(const std::vector<std::uint16_t>& ports, const std::string& parameters) {
  std::string hosts;
  for (const std::uint16_t port : ports) {
    hosts += (hosts.empty() ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(port);
  }
  return "redis-sentinel://" + hosts + "?service_name=mymaster" + (parameters.empty() ? "" : "&") + parameters;
}

RedisServer& SentinelService::master() {
  const RedisReply address = sentinels_.back()->command({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster"});
  for (const auto& server : servers_) {
    if (std::to_string(server->port()) == address.elements.at(1).text) return *server;
  }
  throw std::runtime_error("the master is none of ours");
}

void SentinelService::fail_over() {
  (void)sentinels_.back()->command({"SENTINEL", "FAILOVER", "mymaster"});
  await_failovers(++failovers_);
}

void SentinelService::await_failovers(std::size_t count) {
  failovers_ = count;
  for (const auto& sentinel : sentinels_) {
    if (sentinel->process().running() && !sentinel->process().frozen()) {
      await_output(sentinel->process(), "+switch-master mymaster", count);
    }
  }
}

std::string SentinelService::unsettled() {
  std::string port;
  for (const auto& sentinel : sentinels_) {
    const std::string name = "sentinel " + std::to_string(sentinel->port());
    const RedisReply address = sentinel->command({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster"});
    if (!port.empty() && address.elements.at(1).text != port) {
      return name + " names " + address.elements.at(1).text + ", another one " + port;
    }
    port = address.elements.at(1).text;
    // A master that was silent for too long may be replaced though it speaks again.
    const auto state = sentinel->command({"SENTINEL", "MASTER", "mymaster"}).elements;
    for (std::size_t i = 0; i + 1 < state.size(); i += 2) {
      if (state[i].text == "flags" && state[i + 1].text != "master") return name + ": flags " + state[i + 1].text;
    }
  }
  const std::string others = std::to_string(servers_.size() - 1);
  for (const auto& server : servers_) {
    const std::string name = "server " + std::to_string(server->port());
    const auto info = [&server](const char* field) { return server->info("replication", field); };
    if (std::to_string(server->port()) == port) {
      if (info("role") != "master") return name + " is to be the master, and is " + info("role");
      if (info("connected_slaves") != others) return name + " has " + info("connected_slaves") + " replicas";
      if (!server->replicated_to(servers_.size() - 1)) return name + ": its replicas do not acknowledge";
    } else if (info("master_port") != port || info("master_link_status") != "up") {
      return name + " is a replica of " + info("master_port") + ", link " + info("master_link_status");
    }
  }
  return {};
}

void SentinelService::await_settled() {
  test::await_settled("the service", [this] { return unsettled(); });
}

}  // namespace dlock::test
