// ZooKeeper as a subject of the suite: servers shared by all tests of a process, with proxies for disturbed clients.
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/zookeeper/nodes/node_name.hpp"
#include "backends/zookeeper/strategies/queue_walk.hpp"
#include "server_fixture.hpp"
#include "tests/support/sanitizers.hpp"
#include "tests/support/zookeeper_client.hpp"
#include "tests/support/zookeeper_server.hpp"

namespace dlock::conformance {
namespace {

using std::chrono::seconds;
using test::ZooKeeperClient;

constexpr const char* prefix = "/dlock";
constexpr const char* received = "zk_packets_received";

// The servers of a subject, and a session to inspect their data.
class ZooKeeperService {
 public:
  ZooKeeperService() = default;
  ZooKeeperService(const ZooKeeperService&) = delete;
  ZooKeeperService& operator=(const ZooKeeperService&) = delete;
  virtual ~ZooKeeperService() = default;

  // The ports for clients.
  [[nodiscard]] virtual std::vector<std::uint16_t> ports() const = 0;
  // The requests of clients to all servers so far.
  [[nodiscard]] virtual std::int64_t requests() = 0;
  virtual void restart() = 0;
  // It sees everything that the leader has acknowledged by now.
  [[nodiscard]] virtual ZooKeeperClient& session() = 0;
};

class Standalone final : public ZooKeeperService {
 public:
  [[nodiscard]] std::vector<std::uint16_t> ports() const override { return {server_.port()}; }
  [[nodiscard]] std::int64_t requests() override { return server_.figure(received); }
  void restart() override {
    server_.stop();
    server_.start();
  }
  [[nodiscard]] ZooKeeperClient& session() override { return session_; }

 private:
  test::ZooKeeperServer server_;
  ZooKeeperClient session_{server_.address()};
};

// Clients are connected to the followers: the leader answers a read, even after a sync, before it has applied what the
// followers have, so that a try may find a lock held that was just released elsewhere.
class Ensemble final : public ZooKeeperService {
 public:
  [[nodiscard]] std::vector<std::uint16_t> ports() const override { return ports_; }
  [[nodiscard]] std::int64_t requests() override {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < servers_.size(); ++i) sum += servers_.server(i).figure(received);
    return sum;
  }
  void restart() override {
    servers_.stop();
    servers_.start();
    ports_ = ports_of_followers();
  }
  [[nodiscard]] ZooKeeperClient& session() override {
    session_.sync();
    return session_;
  }

 private:
  [[nodiscard]] std::vector<std::uint16_t> ports_of_followers() const {
    const std::size_t leader = servers_.leader();
    std::vector<std::uint16_t> ports;
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      if (i != leader) ports.push_back(servers_.server(i).port());
    }
    return ports;
  }

  test::ZooKeeperEnsemble servers_;
  std::vector<std::uint16_t> ports_ = ports_of_followers();
  ZooKeeperClient session_{addresses_of(ports_)};
};

enum class Setup { standalone, ensemble };

// Started when first needed, so that helper processes, which make no fixtures, have no servers.
ZooKeeperService& service_of(Setup setup) {
  if (setup == Setup::standalone) {
    static Standalone service;
    return service;
  }
  static Ensemble service;
  return service;
}

class ZooKeeperFixture final : public SessionFixture {
 public:
  // The client library leaves a server that does not answer for two thirds of the session.
  ZooKeeperFixture(Setup setup, std::string strategy)
      : SessionFixture(service_of(setup).ports(),
                       setup == Setup::standalone && !test::sanitized ? seconds(2) : seconds(4)),
        strategy_(std::move(strategy)),
        service_(service_of(setup)) {}

  [[nodiscard]] std::string url() const override {
    return "zookeeper://" + addresses_of(ports()) + "?strategy=" + strategy_;
  }
  void kill_hold(LockKind kind, const std::string& name) override {
    for (const std::string& path : entries_of(kind, name)) (void)service_.session().remove(path);
  }
  // A leader learns late of the sessions that others serve.
  [[nodiscard]] std::chrono::nanoseconds age_of_renewals() const override { return longest_session() / 4; }
  void lose_next_answer() override {
    // A request with the holder's or waiter's name is one that creates its node.
    for (const auto& each : disturbed()) each->lose_reply_to(":" + std::to_string(::getpid()) + ":");
  }
  [[nodiscard]] std::size_t residue(LockKind kind, const std::string& name) override {
    ZooKeeperClient& session = service_.session();
    const std::string path = zookeeper::lock_path(prefix, name, kind);
    const auto node = session.get(path);
    if (!node) return 0;
    return (node->owner != 0 ? 1 : 0) + session.children(path).value_or(std::vector<std::string>()).size();
  }
  [[nodiscard]] std::uint64_t requests() override { return static_cast<std::uint64_t>(service_.requests()); }
  void restart() override { service_.restart(); }

 private:
  [[nodiscard]] std::vector<std::uint16_t> ports() const override { return service_.ports(); }
  [[nodiscard]] std::string url_of(const std::string& addresses, std::chrono::milliseconds session) const override {
    return "zookeeper://" + addresses + "?strategy=" + strategy_ +
           "&session_timeout=" + std::to_string(session.count()) + "ms";
  }
  // The nodes of the first in the queue, or of all that hold it together; or the lock's own node.
  [[nodiscard]] std::vector<std::string> entries_of(LockKind kind, const std::string& name) const override {
    ZooKeeperClient& session = service_.session();
    const std::string path = zookeeper::lock_path(prefix, name, kind);
    const auto node = session.get(path);
    if (node && node->owner != 0) return {path};
    const auto children = session.children(path).value_or(std::vector<std::string>());
    std::vector<std::string> paths;
    for (const auto& each : zookeeper::judge_queue(zookeeper::Layout::curator, path, children, kind).holders()) {
      paths.push_back(path + "/" + std::string(each.node));
    }
    return paths;
  }
  void end_session_of(const std::string& entry) override { test::end_session_of(addresses_of(ports()), entry); }

  const std::string strategy_;
  ZooKeeperService& service_;
};

}  // namespace
}  // namespace dlock::conformance

int main(int argc, char** argv) {
  using namespace dlock::conformance;
  using dlock::LockKind;
  const auto add = [](const std::string& name, Setup setup, const std::string& strategy) {
    std::vector<LockKind> kinds{LockKind::lock, LockKind::election};
    if (strategy == "sequential") kinds.insert(kinds.end(), {LockKind::read_write, LockKind::semaphore});
    add_subject({.name = "zookeeper_" + name,
                 .make = [=] { return std::make_unique<ZooKeeperFixture>(setup, strategy); },
                 .client_tests = false,
                 .kinds = std::move(kinds),
                 .untested = untested_of_server()});
  };
  add("sequential", Setup::standalone, "sequential");
  add("herd", Setup::standalone, "sequential-herd");
  add("ephemeral", Setup::standalone, "ephemeral");
  add("ensemble", Setup::ensemble, "sequential");
  return run(argc, argv);
}
