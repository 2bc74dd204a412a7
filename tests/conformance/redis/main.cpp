// Redis as a subject of the suite: a server for each setup, with a proxy for disturbed clients.
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/redis/requests/keys.hpp"
#include "backends/redis/requests/scripts.hpp"
#include "server_fixture.hpp"
#include "tests/support/redis_cluster.hpp"
#include "tests/support/redis_sentinel.hpp"
#include "tests/support/redis_server.hpp"

namespace dlock::conformance {
namespace {

using rig::Endpoint;
using test::RedisServer;

constexpr std::string_view prefix = "dlock:";

enum class Setup {
  plain,
  tls,
  acl,       // a user with no more rights than needed
  sentinel,  // found through a sentinel, which directs disturbed clients to the proxy
  cluster,   // its only node, which reports no address: clients keep using the one that they have
};

test::RedisConfig config_for(Setup setup) {
  // Data must survive a restart of the service.
  test::RedisConfig config{.append_only = true};
  config.tls = setup == Setup::tls;
  if (setup == Setup::acl) {
    config.password = "administrator";
    config.user = test::RedisUser::of_all_kinds();
    config.user->rights.emplace_back("+scan");  // to list all locks; the locks themselves do not need it
  }
  if (setup == Setup::cluster) config.lines = {"cluster-preferred-endpoint-type unknown-endpoint"};
  return config;
}

// Started by the first fixture that needs it, so that helper processes, which make no fixtures, have no server.
RedisServer& shared_server(Setup setup) {
  if (setup == Setup::cluster) {
    static test::RedisCluster cluster({.masters = 1, .replicas = 0, .server = config_for(setup)});
    return cluster.node(0);
  }
  static std::array<std::unique_ptr<RedisServer>, 4> servers;
  auto& server = servers.at(static_cast<std::size_t>(setup));
  if (!server) server = std::make_unique<RedisServer>(config_for(setup));
  return *server;
}

// A second address of this machine. A cluster's nodes report their ports, so the proxy has the server's port.
constexpr const char* disturbed_address = "127.0.0.2";

Way way_to(Setup setup, const RedisServer& server) {
  Way way;
  way.push_back(std::make_unique<rig::TcpProxy>(
      Endpoint::loopback(server.port()),
      setup == Setup::cluster ? Endpoint::at(disturbed_address, server.port()) : Endpoint::loopback(0)));
  return way;
}

class RedisFixture final : public ServerFixture {
 public:
  RedisFixture(Setup setup, std::string strategy)
      : ServerFixture(way_to(setup, shared_server(setup))),
        setup_(setup),
        strategy_(std::move(strategy)),
        server_(shared_server(setup)),
        proxy_(*disturbed().front()) {
    (void)server_.command({"FLUSHALL"});
    if (setup_ != Setup::sentinel) return;
    // The sentinel never counts the server as down: there is no other one.
    constexpr int down_after_ms = 3'600'000;
    sentinel_.emplace(test::RedisSentinel::Config{
        .services = {{.name = "steady", .master = server_.port(), .down_after_ms = down_after_ms},
                     {.name = "disturbed", .master = proxy_.port(), .down_after_ms = down_after_ms}}});
  }

  [[nodiscard]] std::string url() const override {
    if (setup_ == Setup::cluster) return cluster_url("127.0.0.1");
    return sentinel_ ? sentinel_url("steady") : server_.url("strategy=" + strategy_);
  }
  [[nodiscard]] Client make_client(ClientOptions options, Link link) override {
    if (link == Link::steady) return connect(url(), std::move(options));
    if (sentinel_) return connect(sentinel_url("disturbed"), std::move(options));
    if (setup_ == Setup::cluster) return connect(cluster_url(disturbed_address), std::move(options));
    return connect(server_.url_at(proxy_.port(), "strategy=" + strategy_), std::move(options));
  }
  [[nodiscard]] std::optional<Missing> missing(Feature feature) const override {
    if (feature == Feature::kill_session) {
      return Missing{Missing::Kind::not_applicable, "there is no session: every lock has a lease of its own"};
    }
    if (feature == Feature::lose_answer && setup_ == Setup::tls) {
      return Missing{Missing::Kind::untested, "the proxy cannot tell an acquire in an encrypted stream"};
    }
    return ServerFixture::missing(feature);
  }
  void kill_hold(LockKind kind, const std::string& name) override {
    (void)server_.command({"DEL", redis::keys_of(prefix, name, kind).lock});
  }
  void lose_next_answer() override {
    proxy_.lose_reply_to("dlock-conformance/");  // the prefix of all locks' names in the suite
  }
  [[nodiscard]] std::size_t residue(LockKind kind, const std::string& name) override {
    const redis::Keys keys = redis::keys_of(prefix, name, kind);
    const bool several = redis::several_hold(kind);
    const std::string now = several ? server_.command({"TIME"}).elements.at(0).text + "000" : "";
    const auto holders =
        several ? server_.command({"ZCOUNT", keys.lock, now, "+inf"}) : server_.command({"EXISTS", keys.lock});
    return static_cast<std::size_t>(holders.integer + server_.command({"ZCARD", keys.queue}).integer);
  }
  [[nodiscard]] std::uint64_t requests() override {
    // Scripts' calls count as commands, too; these commands are sent by clients only.
    return static_cast<std::uint64_t>(server_.calls_of(
        {"eval", "evalsha", "wait", "ping", "subscribe", "unsubscribe", "ssubscribe", "sunsubscribe"}));
  }
  void restart() override {
    server_.stop();
    server_.start();
  }

 private:
  [[nodiscard]] std::string sentinel_url(const std::string& service) const {
    return "redis-sentinel://127.0.0.1:" + std::to_string(sentinel_->port()) + "?service_name=" + service +
           "&strategy=" + strategy_;
  }
  [[nodiscard]] std::string cluster_url(const std::string& address) const {
    return "redis-cluster://" + address + ":" + std::to_string(server_.port()) + "?strategy=" + strategy_;
  }

  const Setup setup_;
  const std::string strategy_;
  RedisServer& server_;
  rig::TcpProxy& proxy_;
  std::optional<test::RedisSentinel> sentinel_;
};

}  // namespace
}  // namespace dlock::conformance

int main(int argc, char** argv) {
  using namespace dlock::conformance;
  using dlock::LockKind;
  const auto add = [](const std::string& name, Setup setup, const std::string& strategy) {
    std::vector<LockKind> kinds{LockKind::lock, LockKind::election};
    if (strategy != "broadcast") kinds.insert(kinds.end(), {LockKind::read_write, LockKind::semaphore});
    add_subject({.name = "redis_" + name,
                 .make = [=] { return std::make_unique<RedisFixture>(setup, strategy); },
                 .client_tests = false,
                 .kinds = std::move(kinds),
                 .untested = untested_of_server(setup == Setup::tls)});
  };
  for (const std::string strategy : {"queue", "broadcast", "poll"}) add(strategy, Setup::plain, strategy);
  add("tls", Setup::tls, "queue");
  add("acl", Setup::acl, "queue");
  add("sentinel", Setup::sentinel, "queue");
  add("cluster", Setup::cluster, "queue");
  return run(argc, argv);
}
