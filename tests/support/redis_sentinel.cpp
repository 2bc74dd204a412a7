#include "tests/support/redis_sentinel.hpp"

#include <sstream>
#include <stdexcept>
#include <utility>

#include "torture/rig/hang_guard.hpp"

namespace dlock::test {
namespace {

void await_output(const rig::ChildProcess& process, const std::string& text, std::size_t times) {
  const auto condition = [&](const std::string& output) { return count_of(output, text) >= times; };
  if (!process.wait_until(condition, rig::hang_guard)) {
    throw std::runtime_error("no \"" + text + "\" in what this has printed:\n" + process.output());
  }
}

}  // namespace

RedisSentinel::RedisSentinel(Config config) : Server("redis-sentinel"), config_(std::move(config)) {
  start_on_free_ports();
}

// A later start does not write the file again, because the sentinel stores its state in it.
void RedisSentinel::choose_ports() {
  Server::choose_ports();
  std::ostringstream text;
  text << "bind 127.0.0.1\nprotected-mode no\ndaemonize no\nlogfile \"\"\ndir " << directory() << "\nport " << port()
       << "\n";
  if (!config_.password.empty()) {
    text << "requirepass " << config_.password << "\nsentinel sentinel-pass " << config_.password << "\n";
  }
  for (const Service& service : config_.services) {
    text << "sentinel monitor " << service.name << " 127.0.0.1 " << service.master << " " << config_.quorum
         << "\nsentinel down-after-milliseconds " << service.name << " " << service.down_after_ms
         << "\nsentinel failover-timeout " << service.name << " 3000\n";
    if (!service.password.empty()) text << "sentinel auth-pass " << service.name << " " << service.password << "\n";
  }
  write_file(file(), text.str());
}

std::vector<std::string> RedisSentinel::configure() {
  return {"redis-server", file(), "--sentinel"};
}

bool RedisSentinel::serves() const {
  return has_printed("+monitor master " + config_.services.back().name);
}

RedisReply RedisSentinel::command(const std::vector<std::string>& words) const {
  RedisConnection connection(rig::Endpoint::loopback(port()));
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
  const RedisSentinel::Service service{
      .master = servers_.front()->port(), .password = config.server.password, .down_after_ms = config.down_after_ms};
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

std::string SentinelService::url_at(const std::vector<std::uint16_t>& ports, const std::string& parameters) {
  return "redis-sentinel://" + addresses_of(ports) + "?service_name=mymaster" + (parameters.empty() ? "" : "&") +
         parameters;
}

RedisServer& SentinelService::master() {
  const RedisReply address = sentinels_.back()->command({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster"});
  for (const auto& server : servers_) {
    if (std::to_string(server->port()) == address.elements.at(1).text) return *server;
  }
  throw std::runtime_error("the master is none of ours");
}

void SentinelService::set_down_after(int ms) {
  for (const auto& sentinel : sentinels_) {
    (void)sentinel->command({"SENTINEL", "SET", "mymaster", "down-after-milliseconds", std::to_string(ms)});
  }
}

void SentinelService::fail_over() {
  (void)sentinels_.back()->command({"SENTINEL", "FAILOVER", "mymaster"});
  await_failovers(++failovers_);
}

void SentinelService::await_failovers(std::size_t count) {
  failovers_ = count;
  for (const auto& sentinel : sentinels_) {
    if (sentinel->active()) {
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
    // A master that was silent for too long may still be replaced after it answers again.
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
