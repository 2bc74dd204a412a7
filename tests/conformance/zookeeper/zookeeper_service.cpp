#include "zookeeper/zookeeper_service.hpp"

#include <memory>
#include <optional>

namespace dlock::conformance {

std::string addresses_of(const std::vector<std::uint16_t>& ports) {
  std::string list;
  for (const std::uint16_t port : ports) list += (list.empty() ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(port);
  return list;
}

namespace {

constexpr const char* received = "zk_packets_received";

class Standalone final : public ZooKeeperService {
 public:
  [[nodiscard]] std::vector<std::uint16_t> ports() const override { return {server_.port()}; }
  [[nodiscard]] std::int64_t requests() override { return server_.figure(received); }
  void restart() override {
    server_.stop();
    server_.start();
  }
  [[nodiscard]] test::ZooKeeperClient& session() override { return session_; }

 private:
  test::ZooKeeperServer server_;
  test::ZooKeeperClient session_{server_.address()};
};

// Clients are connected to the followers: the leader answers a read, behind a sync as well, before it has applied what
// the followers have, so that a try may find a lock held that has just been released elsewhere.
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
  [[nodiscard]] test::ZooKeeperClient& session() override {
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
  test::ZooKeeperClient session_{addresses_of(ports_)};
};

}  // namespace

ZooKeeperService& ZooKeeperService::standalone() {
  static Standalone service;
  return service;
}

ZooKeeperService& ZooKeeperService::ensemble() {
  static Ensemble service;
  return service;
}

}  // namespace dlock::conformance
