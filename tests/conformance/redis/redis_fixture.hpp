// Redis as a subject of the suite: a server of its own for each way to set it up, disturbed clients behind a proxy.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <dlock/conformance/fixture.hpp>

#include "tests/support/redis_sentinel.hpp"
#include "tests/support/redis_server.hpp"
#include "torture/rig/tcp_proxy.hpp"

namespace dlock::conformance {

enum class RedisSetup {
  plain,
  tls,
  acl,       // a user with no more rights than needed
  sentinel,  // found through a sentinel, which leads disturbed clients through the proxy
  cluster,   // the only node of one, which tells nobody its address: clients stay with the one that they know it by
};

class RedisFixture final : public Fixture {
 public:
  // The server is started by the first fixture of its setup and serves all later ones, emptied for each.
  RedisFixture(RedisSetup setup, std::string strategy);

  [[nodiscard]] std::string url() const override;
  [[nodiscard]] Client make_client(ClientOptions options, Link link) override;
  [[nodiscard]] std::optional<Missing> missing(Feature feature) const override;
  void kill_hold(LockKind kind, const std::string& name) override;
  void stall() override;
  void resume() override;
  void delay_answers(std::chrono::nanoseconds by) override;
  void cut() override;
  void heal() override;
  void lose_next_answer() override;
  [[nodiscard]] std::size_t residue(LockKind kind, const std::string& name) override;
  [[nodiscard]] std::uint64_t requests() override;
  void restart() override;

 private:
  [[nodiscard]] std::string sentinel_url(const std::string& service) const;
  [[nodiscard]] std::string cluster_url(const std::string& address) const;

  RedisSetup setup_;
  std::string strategy_;
  test::RedisServer& server_;
  rig::TcpProxy proxy_;
  std::optional<test::RedisSentinel> sentinel_;
};

}  // namespace dlock::conformance
