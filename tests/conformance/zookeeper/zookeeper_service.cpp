#include "zookeeper/zookeeper_service.hpp"

#include <memory>
#include <optional>

namespace dlock::conformance {

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

class Ensemble final : public ZooKeeperService {
 public:
  [[nodiscard]] std::vector<std::uint16_t> ports() const override {
    std::vector<std::uint16_t> all;
    for (std::size_t i = 0; i < servers_.size(); ++i) all.push_back(servers_.server(i).port());
    return all;
  }
  [[nodiscard]] std::int64_t requests() override {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < servers_.size(); ++i) sum += servers_.server(i).figure(received);
    return sum;
  }
  void restart() override {
    servers_.stop();
    servers_.start();
  }
  [[nodiscard]] test::ZooKeeperClient& session() override {
    session_.sync();
    return session_;
  }

 private:
  test::ZooKeeperEnsemble servers_;
  test::ZooKeeperClient session_{servers_.addresses()};
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
