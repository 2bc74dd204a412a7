// etcd as a subject of the suite: servers shared by all tests of a process, with proxies for disturbed clients.
#include <map>
#include <thread>

#include "backends/etcd/locks/keys.hpp"
#include "server_fixture.hpp"
#include "tests/support/etcd_server.hpp"
#include "tests/support/sanitizers.hpp"
#include "torture/rig/hang_guard.hpp"

namespace dlock::conformance {
namespace {

using rig::TcpProxy;
using std::chrono::seconds;

struct Setup {
  std::string name;
  test::EtcdConfig config = {};
  std::size_t members = 1;
};

// Started when first needed, so that helper processes, which make no fixtures, have no servers.
test::EtcdCluster& servers_of(const Setup& setup) {
  static std::map<std::string, test::EtcdCluster> started;
  return started.try_emplace(setup.name, setup.config, setup.members).first->second;
}

std::vector<std::uint16_t> ports_of(const test::EtcdCluster& servers) {
  std::vector<std::uint16_t> ports;
  for (std::size_t i = 0; i < servers.size(); ++i) ports.push_back(servers.server(i).port());
  return ports;
}

class EtcdFixture final : public SessionFixture {
 public:
  explicit EtcdFixture(const Setup& setup)
      : SessionFixture(ports_of(servers_of(setup)), test::sanitized ? seconds(4) : seconds(2)),
        encrypted_(setup.config.tls),
        servers_(servers_of(setup)) {}

  [[nodiscard]] std::string url() const override { return servers_.url(); }
  [[nodiscard]] std::optional<Missing> missing(Feature feature) const override {
    if (feature == Feature::lose_answer && encrypted_) {
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
  [[nodiscard]] std::vector<std::string> entries_of(LockKind kind, const std::string& name) const override {
    return servers_.server(0).keys(etcd::lock_prefix({}, kind, name));
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

  const bool encrypted_;
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
  const std::vector<Setup> setups = {
      {"single"},
      {"cluster", {}, 3},
      {"login", {.user = dlock::test::EtcdUser{}, .options = {"--bcrypt-cost=4"}}},
      {"tls", {.tls = true, .client_certificates = true}},
  };
  for (const Setup& setup : setups) {
    add_subject({.name = "etcd_" + setup.name,
                 .make = [=] { return std::make_unique<EtcdFixture>(setup); },
                 .client_tests = false,
                 .kinds = {LockKind::lock, LockKind::election, LockKind::read_write, LockKind::semaphore},
                 .untested = untested_of_server(setup.config.tls)});
  }
  return run(argc, argv);
}
