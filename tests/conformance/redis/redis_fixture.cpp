#include "redis/redis_fixture.hpp"

#include <array>
#include <string_view>
#include <utility>

#include "backends/redis/requests/keys.hpp"
#include "backends/redis/requests/scripts.hpp"
#include "tests/support/redis_cluster.hpp"

namespace dlock::conformance {

namespace {

using rig::Direction;
using rig::Endpoint;
using rig::Traffic;
using test::RedisConfig;
using test::RedisServer;

constexpr std::string_view prefix = "dlock:";

RedisConfig config_for(RedisSetup setup) {
  // Data has to survive a restart of the service.
  RedisConfig config{.append_only = true};
  config.tls = setup == RedisSetup::tls;
  if (setup == RedisSetup::acl) {
    config.password = "administrator";
    config.user = test::RedisUser::of_all_kinds();
    config.user->rights.emplace_back("+scan");  // to list all locks; the locks themselves need no such right
  }
  if (setup == RedisSetup::cluster) config.lines = {"cluster-preferred-endpoint-type unknown-endpoint"};
  return config;
}

// Another address of this machine. A cluster's nodes tell their ports, so the proxy has the server's.
constexpr const char* disturbed_address = "127.0.0.2";

Endpoint proxy_at(RedisSetup setup, const RedisServer& server) {
  return setup == RedisSetup::cluster ? Endpoint::at(disturbed_address, server.port()) : Endpoint::loopback(0);
}

// Started by the first fixture that needs it, so that helper processes, which make no fixtures, have no server.
RedisServer& shared_server(RedisSetup setup) {
  if (setup == RedisSetup::cluster) {
    static test::RedisCluster cluster({.masters = 1, .replicas = 0, .server = config_for(setup)});
    return cluster.node(0);
  }
  static std::array<std::unique_ptr<RedisServer>, 4> servers;
  auto& server = servers.at(static_cast<std::size_t>(setup));
  if (!server) server = std::make_unique<RedisServer>(config_for(setup));
  return *server;
}

}  // namespace

RedisFixture::RedisFixture(RedisSetup setup, std::string strategy)
    : setup_(setup),
      strategy_(std::move(strategy)),
      server_(shared_server(setup)),
      proxy_(Endpoint::loopback(server_.port()), proxy_at(setup, server_)) {
  (void)server_.command({"FLUSHALL"});
  if (setup_ != RedisSetup::sentinel) return;
  // It never takes the server for down: there is no other one.
  constexpr int down_after_ms = 3'600'000;
  sentinel_.emplace(test::RedisSentinel::Config{
      .services = {{.name = "steady", .master = server_.port(), .down_after_ms = down_after_ms},
                   {.name = "disturbed", .master = proxy_.port(), .down_after_ms = down_after_ms}}});
}

std::string RedisFixture::url() const {
  if (setup_ == RedisSetup::cluster) return cluster_url("127.0.0.1");
  return sentinel_ ? sentinel_url("steady") : server_.url("strategy=" + strategy_);
}

std::string RedisFixture::sentinel_url(const std::string& service) const {
  return "redis-sentinel://127.0.0.1:" + std::to_string(sentinel_->port()) + "?service_name=" + service +
         "&strategy=" + strategy_;
}

std::string RedisFixture::cluster_url(const std::string& address) const {
  return "redis-cluster://" + address + ":" + std::to_string(server_.port()) + "?strategy=" + strategy_;
}

Client RedisFixture::make_client(ClientOptions options, Link link) {
  if (link == Link::steady) return connect(url(), std::move(options));
  if (sentinel_) return connect(sentinel_url("disturbed"), std::move(options));
  if (setup_ == RedisSetup::cluster) return connect(cluster_url(disturbed_address), std::move(options));
  return connect(server_.url_at(proxy_.port(), "strategy=" + strategy_), std::move(options));
}

std::optional<Missing> RedisFixture::missing(Feature feature) const {
  using Kind = Missing::Kind;
  switch (feature) {
    case Feature::step_clock:
      return Missing{Kind::untested, "the clock of a Redis server cannot be stepped"};
    case Feature::kill_session:
      return Missing{Kind::not_applicable, "there is no session: every lock has a lease of its own"};
    case Feature::lose_answer:
      if (setup_ != RedisSetup::tls) return std::nullopt;
      return Missing{Kind::untested, "the proxy cannot tell an acquire in an encrypted stream"};
    default:
      return std::nullopt;
  }
}

void RedisFixture::kill_hold(LockKind kind, const std::string& name) {
  (void)server_.command({"DEL", redis::keys_of(prefix, name, kind).lock});
}

void RedisFixture::stall() {
  proxy_.set({.mode = Traffic::Mode::hold});
}

void RedisFixture::resume() {
  proxy_.pass();
}

void RedisFixture::delay_answers(std::chrono::nanoseconds by) {
  proxy_.set(Direction::to_client, {.delay = by});
}

void RedisFixture::cut() {
  proxy_.refuse(true);
  proxy_.drop();
}

void RedisFixture::heal() {
  proxy_.refuse(false);
}

void RedisFixture::lose_next_answer() {
  proxy_.lose_reply_to("dlock-conformance/");  // what the names of all locks of the suite start with
}

std::size_t RedisFixture::residue(LockKind kind, const std::string& name) {
  const redis::Keys keys = redis::keys_of(prefix, name, kind);
  const bool several = redis::several_hold(kind);
  const std::string now = several ? server_.command({"TIME"}).elements.at(0).text + "000" : "";
  const auto holders =
      several ? server_.command({"ZCOUNT", keys.lock, now, "+inf"}) : server_.command({"EXISTS", keys.lock});
  return static_cast<std::size_t>(holders.integer + server_.command({"ZCARD", keys.queue}).integer);
}

std::uint64_t RedisFixture::requests() {
  // What the scripts call counts as commands, too; these are those that only clients send.
  return static_cast<std::uint64_t>(
      server_.calls_of({"eval", "evalsha", "wait", "ping", "subscribe", "unsubscribe", "ssubscribe", "sunsubscribe"}));
}

void RedisFixture::restart() {
  server_.stop();
  server_.start();
}

}  // namespace dlock::conformance
