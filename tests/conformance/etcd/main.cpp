// etcd as a subject of the suite: servers shared by all tests of a process, with proxies for disturbed clients.
#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "server_fixture.hpp"
#include "tests/support/etcd_server.hpp"
#include "tests/support/sanitizers.hpp"
#include "torture/rig/hang_guard.hpp"

namespace dlock::conformance {
namespace {

using rig::TcpProxy;
using std::chrono::seconds;

enum class Setup { single, cluster, login, tls };

// Started when first needed, so that helper processes, which make no fixtures, have no servers.
test::EtcdCluster& servers_of(Setup setup) {
  switch (setup) {
    case Setup::single: {
      static test::EtcdCluster single({}, 1);
      return single;
    }
    case Setup::cluster: {
      static test::EtcdCluster cluster;
      return cluster;
    }
    case Setup::login: {
      static test::EtcdCluster with_users({.user = test::EtcdUser{}, .options = {"--bcrypt-cost=4"}}, 1);
      return with_users;
    }
    case Setup::tls: {
      static test::EtcdCluster with_tls({.tls = true, .client_certificates = true}, 1);
      return with_tls;
    }
  }
  throw std::logic_error("no such setup");
}

std::vector<std::uint16_t> ports_of(const test::EtcdCluster& servers) {
  std::vector<std::uint16_t> ports;
  for (std::size_t i = 0; i < servers.size(); ++i) ports.push_back(servers.server(i).port());
  return ports;
}

// "dlock.rw/" for LockKind::read_write.
std::string prefix_of(LockKind kind) {
  switch (kind) {
    case LockKind::lock:
      break;
    case LockKind::read_write:
      return "dlock.rw/";
    case LockKind::semaphore:
      return "dlock.sem/";
    case LockKind::election:
      return "dlock.elect/";
  }
  return "dlock/";
}

class EtcdFixture final : public SessionFixture {
 public:
  explicit EtcdFixture(Setup setup)
      : SessionFixture(ports_of(servers_of(setup)), test::sanitized ? seconds(4) : seconds(2)),
        setup_(setup),
        servers_(servers_of(setup)) {}

  [[nodiscard]] std::string url() const override { return servers_.url(); }
  [[nodiscard]] std::optional<Missing> missing(Feature feature) const override {
    if (feature == Feature::lose_answer && setup_ == Setup::tls) {
      return Missing{Missing::Kind::untested, "an acquire cannot be told from the rest of an encrypted stream"};
    }
    return ServerFixture::missing(feature);
  }
  void kill_hold(LockKind kind, const std::string& name) override {
    if (!admin_) admin_ = connect(url(), {.label = "conformance-admin"});
    (void)admin_->break_lock(name, kind);
  }
  void delay_answers(std::chrono::nanoseconds by) override {
    delay_ = by;
    ServerFixture::delay_answers(by);
  }
  // A renewal counts from its keep-alive, once a read sent after that one's answer has been answered, too.
  [[nodiscard]] std::chrono::nanoseconds age_of_renewals() const override { return delay_; }
  // The server may send other messages before the answer, so the connection must not break at the first byte.
  void lose_next_answer() override {
    for (const auto& each : disturbed()) {
      // Only an acquire checks whether its owner has given up.
      each->before_request(".gone/", [this, proxy = each.get()] {
        const double before = transactions();
        proxy->set(rig::Direction::to_client, {.mode = rig::Traffic::Mode::hold});
        losing_ = std::jthread([this, proxy, before] { end_once_carried_out(*proxy, before); });
      });
    }
  }
  [[nodiscard]] std::size_t residue(LockKind kind, const std::string& name) override {
    return entries_of(kind, name).size();
  }
  [[nodiscard]] std::uint64_t requests() override {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      sum += static_cast<std::uint64_t>(servers_.server(i).requests());
    }
    return sum;
  }
  void restart() override {
    servers_.stop();
    servers_.start();
  }

 private:
  [[nodiscard]] std::vector<std::uint16_t> ports() const override { return ports_of(servers_); }
  [[nodiscard]] std::string url_of(const std::string& addresses, std::chrono::milliseconds session) const override {
    return servers_.server(0).url_of(addresses, "session_ttl=" + std::to_string(session.count()) + "ms");
  }
  // Keys: <prefix><name>/<lease>.<owner>.
  [[nodiscard]] std::vector<std::string> entries_of(LockKind kind, const std::string& name) const override {
    std::string prefix = prefix_of(kind);
    for (const char c : name) {
      prefix += c == '/' ? std::string("%2F") : c == '%' ? std::string("%25") : std::string(1, c);
    }
    return servers_.server(0).keys(prefix + "/");
  }
  void end_session_of(const std::string& entry) override {
    const std::string node = entry.substr(entry.rfind('/') + 1);
    try {
      (void)servers_.server(0).ctl({"lease", "revoke", node.substr(0, node.find('.'))});
    } catch (const std::runtime_error& e) {
      // On a busy machine the session may have expired before etcdctl revokes it.
      if (std::string_view(e.what()).find("requested lease not found") == std::string_view::npos) throw;
    }
  }

  [[nodiscard]] double transactions() const {
    double sum = 0;
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      sum += servers_.server(i).figure("grpc_server_handled_total", "grpc_method=\"Txn\"").value_or(0);
    }
    return sum;
  }
  void end_once_carried_out(TcpProxy& proxy, double before) {
    const auto give_up = std::chrono::steady_clock::now() + rig::hang_guard;
    while (transactions() <= before && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
    // The client repeats the request at a different member, which must answer it: a rule that acted there would wait
    // for this thread, which waits for that proxy.
    for (const auto& each : disturbed()) {
      if (each.get() != &proxy) each->pass();
    }
    proxy.drop();
    proxy.pass();
  }

  const Setup setup_;
  test::EtcdCluster& servers_;
  std::chrono::nanoseconds delay_{0};
  std::optional<Client> admin_;
  std::jthread losing_;
};

}  // namespace
}  // namespace dlock::conformance

int main(int argc, char** argv) {
  using namespace dlock::conformance;
  using dlock::LockKind;
  const auto add = [](const std::string& name, Setup setup) {
    add_subject({.name = "etcd_" + name,
                 .make = [=] { return std::make_unique<EtcdFixture>(setup); },
                 .client_tests = false,
                 .kinds = {LockKind::lock, LockKind::election, LockKind::read_write, LockKind::semaphore},
                 .untested = untested_of_server(setup == Setup::tls)});
  };
  add("single", Setup::single);
  add("cluster", Setup::cluster);
  add("login", Setup::login);
  add("tls", Setup::tls);
  return run(argc, argv);
}
