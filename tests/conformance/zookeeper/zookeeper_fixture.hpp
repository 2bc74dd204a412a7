// ZooKeeper as a subject of the suite: servers that all tests of a process share, disturbed clients behind proxies.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dlock/conformance/fixture.hpp>

#include "torture/rig/tcp_proxy.hpp"

namespace dlock::conformance {

enum class ZooKeeperSetup { standalone, ensemble };

class ZooKeeperService;

class ZooKeeperFixture final : public Fixture {
 public:
  // The servers are started by the first fixture that needs them and serve all later ones.
  ZooKeeperFixture(ZooKeeperSetup setup, std::string strategy);
  ~ZooKeeperFixture() override;

  [[nodiscard]] std::string url() const override;
  [[nodiscard]] Client make_client(ClientOptions options, Link link) override;
  [[nodiscard]] std::optional<Missing> missing(Feature feature) const override;
  void kill_hold(LockKind kind, const std::string& name) override;
  void kill_session(Client& client) override;
  void stall() override;
  void resume() override;
  void delay_answers(std::chrono::nanoseconds by) override;
  [[nodiscard]] std::chrono::nanoseconds age_of_renewals() const override;
  void cut() override;
  void heal() override;
  void lose_next_answer() override;
  [[nodiscard]] std::size_t residue(LockKind kind, const std::string& name) override;
  [[nodiscard]] std::uint64_t requests() override;
  void restart() override;

 private:
  // A way to the service: one in front of each server.
  using Proxies = std::vector<std::unique_ptr<rig::TcpProxy>>;
  static void cut(const Proxies& way);
  [[nodiscard]] std::vector<std::string> holder_paths(LockKind kind, const std::string& name) const;
  [[nodiscard]] std::string url_of(const std::string& addresses, std::chrono::milliseconds session) const;

  ZooKeeperSetup setup_;
  std::string strategy_;
  ZooKeeperService& service_;
  Proxies disturbed_;
  std::chrono::milliseconds longest_disturbed_{0};  // session
  std::deque<Proxies> mortal_;
};

}  // namespace dlock::conformance
