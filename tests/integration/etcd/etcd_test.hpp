// What the tests on real etcd servers share.
#pragma once

#include "backends/etcd/locks/keys.hpp"
#include "network/room.hpp"
#include "tests/support/etcd_server.hpp"

namespace dlock::test {

// What this bounds ends long before far_too_long, even on a busy machine.
inline ClientOptions impatient() {
  return {.response_timeout = 1s, .connect_timeout = 2s, .close_timeout = 300ms};
}

// A session that is kept through every disturbance of a test: what is free before it ends was freed.
inline constexpr const char* long_session = "session_ttl=60s";
// Sessions that tests wait to see the end of.
inline constexpr const char* short_session = "session_ttl=2s";
inline constexpr auto short_ttl = 2s;

// What the servers know, asked by etcdctl.
class Keys {
 public:
  explicit Keys(const EtcdServer& server) : server_(server) {}

  [[nodiscard]] std::size_t residue(const std::string& name) const { return keys_of(name).size(); }
  // What is cleaned up in the background is gone at some time.
  void await_residue(const std::string& name, std::size_t count) const {
    await("not so many are at " + name, [&] { return residue(name) == count; });
  }
  // Of the only client at that lock.
  void remove_key_of(const std::string& name) const { (void)server_.ctl({"del", keys_of(name).at(0)}); }
  void remove_all() const { (void)server_.ctl({"del", "", "--prefix"}); }

 private:
  [[nodiscard]] std::vector<std::string> keys_of(const std::string& name) const {
    return server_.keys(etcd::lock_prefix({}, LockKind::lock, name));
  }

  const EtcdServer& server_;
};

// One server with a proxy in front of it. Clients made by disturbed() go through the proxy.
class EtcdTest : public ::testing::Test {
 protected:
  // The server is one that all such tests of the process share, until one fails.
  EtcdTest() : EtcdTest(shared() ? shared() : shared() = std::make_shared<EtcdServer>()) { keys.remove_all(); }
  // A server of the test's own.
  explicit EtcdTest(EtcdConfig config) : EtcdTest(std::make_shared<EtcdServer>(std::move(config))) {}
  void TearDown() override {
    if (HasFailure()) shared().reset();
  }

  [[nodiscard]] Client steady(ClientOptions options = {}, const std::string& parameters = long_session) const {
    return connect_patiently(server.url(parameters), std::move(options));
  }
  [[nodiscard]] Client disturbed(ClientOptions options = {}, const std::string& parameters = long_session) const {
    return connect_patiently(server.url_at(proxy.port(), parameters), std::move(options));
  }
  // From now on nothing passes, and connections are refused.
  void cut() {
    proxy.refuse(true);
    proxy.drop();
  }
  void heal() { proxy.refuse(false); }

 private:
  explicit EtcdTest(const std::shared_ptr<EtcdServer>& started)
      : server_(started), server(*server_), keys(server), proxy(rig::Endpoint::loopback(server.port())) {}
  static std::shared_ptr<EtcdServer>& shared() {
    static std::shared_ptr<EtcdServer> server;
    return server;
  }

  std::shared_ptr<EtcdServer> server_;

 protected:
  EtcdServer& server;
  Keys keys;
  rig::TcpProxy proxy;
};

}  // namespace dlock::test
