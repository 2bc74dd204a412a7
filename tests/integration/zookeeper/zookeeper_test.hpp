// What the tests on real ZooKeeper servers share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/zookeeper/nodes/node_name.hpp"
#include "network/room.hpp"
#include "tests/support/zookeeper_client.hpp"
#include "tests/support/zookeeper_server.hpp"

namespace dlock::test {

// What this bounds ends long before far_too_long, even on a busy machine.
inline ClientOptions impatient() {
  return {.response_timeout = 1s, .connect_timeout = 2s, .close_timeout = 300ms};
}

// A session that is kept through every disturbance of a test: what is free before it ends was freed. The longer a
// session, the longer the client library waits before it tries a server again (a sixtieth of it).
inline constexpr const char* long_session = "session_timeout=60s";
// Sessions that tests wait to see the end of. A busy machine keeps them alive until then.
inline constexpr const char* short_session = "session_timeout=4s";

// What the servers know of a lock, by a session of the test's own.
class Tree {
 public:
  explicit Tree(const std::string& addresses) : zk(addresses) {}

  [[nodiscard]] static std::string path(const std::string& name, LockKind kind = LockKind::lock) {
    return zookeeper::lock_path("/dlock", name, kind);
  }
  // Those who hold or wait, the first one first.
  [[nodiscard]] std::vector<std::string> queue(const std::string& name) {
    auto nodes = zk.children(path(name)).value_or(std::vector<std::string>());
    const auto number = [](const std::string& node) -> std::int64_t {
      const auto curator = zookeeper::parse_queue_node(zookeeper::Layout::curator, node);
      if (curator.kind == zookeeper::QueueNode::Kind::member) return curator.sequence;
      return zookeeper::parse_queue_node(zookeeper::Layout::kazoo, node).sequence;
    };
    std::stable_sort(nodes.begin(), nodes.end(), [&](const auto& a, const auto& b) { return number(a) < number(b); });
    return nodes;
  }
  // The node of whoever holds the lock, where anybody does: the first of the queue, or the lock's node itself.
  [[nodiscard]] std::optional<std::string> holder_path(const std::string& name) {
    const auto node = zk.get(path(name));
    if (!node) return std::nullopt;
    if (node->owner != 0) return path(name);
    const auto nodes = queue(name);
    if (nodes.empty()) return std::nullopt;
    return path(name) + "/" + nodes.front();
  }
  [[nodiscard]] std::optional<ZooKeeperClient::Node> holder(const std::string& name) {
    const auto at = holder_path(name);
    return at ? zk.get(*at) : std::nullopt;
  }
  // A node that another program made, under the lock's node.
  std::string add_foreign(const std::string& name, const std::string& node,
                          ZooKeeperClient::Kind kind = ZooKeeperClient::Kind::sequential) {
    zk.create_all(path(name));
    return zk.create(path(name) + "/" + node, "elsewhere", kind);
  }

  // Holders and waiters.
  [[nodiscard]] std::size_t residue(const std::string& name, LockKind kind = LockKind::lock) {
    const auto node = zk.get(path(name, kind));
    if (!node) return 0;
    return (node->owner != 0 ? 1U : 0U) + zk.children(path(name, kind)).value_or(std::vector<std::string>()).size();
  }
  // What is cleaned up in the background is gone at some time.
  void await_residue(const std::string& name, std::size_t count, LockKind kind = LockKind::lock) {
    await("not so many are at " + name, [&] { return residue(name, kind) == count; });
  }
  void await_no_residue(const std::string& name, LockKind kind = LockKind::lock) { await_residue(name, 0, kind); }
  // All nodes but the servers' own.
  void remove_all() {
    const auto top = zk.children("/").value();
    for (const std::string& each : top) {
      if (each != "zookeeper") zk.remove_all("/" + each);
    }
  }

  ZooKeeperClient zk;
};

// A standalone server with a proxy in front of it. Clients made by disturbed() go through the proxy.
class ZooKeeperTest : public ::testing::Test, public Tree {
 protected:
  // The server is one that all such tests of the process share, until one fails.
  ZooKeeperTest() : ZooKeeperTest(shared() ? shared() : shared() = std::make_shared<ZooKeeperServer>()) {
    remove_all();
  }
  // A server of the test's own.
  explicit ZooKeeperTest(ZooKeeperConfig config)
      : ZooKeeperTest(std::make_shared<ZooKeeperServer>(std::move(config))) {}
  void TearDown() override {
    if (HasFailure()) shared().reset();
  }

  [[nodiscard]] Client steady(ClientOptions options = {}, const std::string& parameters = long_session) const {
    return connect_patiently(server.url(parameters), std::move(options));
  }
  [[nodiscard]] Client disturbed(ClientOptions options = {}, const std::string& parameters = long_session) const {
    return connect_patiently("zookeeper://127.0.0.1:" + std::to_string(proxy.port()) + "?" + parameters,
                             std::move(options));
  }
  // From now on nothing passes, and connections are refused.
  void cut() {
    proxy.refuse(true);
    proxy.drop();
  }
  void heal() { proxy.refuse(false); }

 private:
  explicit ZooKeeperTest(const std::shared_ptr<ZooKeeperServer>& started)
      : Tree(started->address()), server_(started), server(*server_), proxy(rig::Endpoint::loopback(server.port())) {}
  static std::shared_ptr<ZooKeeperServer>& shared() {
    static std::shared_ptr<ZooKeeperServer> server;
    return server;
  }

  std::shared_ptr<ZooKeeperServer> server_;

 protected:
  ZooKeeperServer& server;
  rig::TcpProxy proxy;
};

}  // namespace dlock::test
