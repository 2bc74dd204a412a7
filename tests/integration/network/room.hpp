// Rooms: tests that are the same for every backend whose locks live behind a network. The program of a backend links
// them, and says in service_kind() what its service is like.
#pragma once

#include <algorithm>

#include "default_strategy.hpp"
#include "integration_test.hpp"
#include "tests/support/hostile_server.hpp"
#include "tests/support/sanitizers.hpp"
#include "tests/support/throwaway_certificate.hpp"
#include "torture/rig/tcp_proxy.hpp"

namespace dlock::test {

// Connections stay, and nothing passes.
inline constexpr rig::Traffic black_hole = {.mode = rig::Traffic::Mode::hold};

// A running server. Clients need a password where the service has such.
class Service {
 public:
  Service() = default;
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  virtual ~Service() = default;

  [[nodiscard]] virtual std::uint16_t port() const = 0;
  // As clients reach it, or a proxy in front of it.
  [[nodiscard]] virtual std::string url_at(std::uint16_t port, const std::string& parameters) const = 0;
  // The same without encryption, or with it and belief in this authority, or in those of the machine.
  [[nodiscard]] virtual std::string plain_url(std::uint16_t /*port*/) const { return {}; }
  [[nodiscard]] virtual std::string tls_url(std::uint16_t /*port*/, const std::string& /*authority*/) const {
    return {};
  }
  // Who signed its certificate.
  [[nodiscard]] virtual std::string authority() const { return {}; }
  // Another authority signs another certificate, in the same files; the server uses it when it is started again.
  virtual void renew_certificate() {}
  // Of a client with this password, which the service does not let have the lock "secret".
  [[nodiscard]] virtual std::string url_of_stranger(const std::string& password, const std::string& parameters) = 0;

  virtual void stop() = 0;   // in good order
  virtual void kill() = 0;   // as by SIGKILL
  virtual void start() = 0;  // at the same port, with its data
  virtual void freeze() = 0;
  virtual void thaw() = 0;
  // As if nobody had ever locked anything.
  virtual void clear() = 0;

  // Holders, waiters, and whatever else could delay others.
  [[nodiscard]] virtual std::size_t residue(const std::string& strategy, const std::string& name) = 0;
  // Whether anything tells that there was such a lock.
  [[nodiscard]] virtual bool remembers(const std::string& strategy, const std::string& name) = 0;
  // As if all names had been taken so much earlier, as far as it knows when that was; those being taken may be left
  // out.
  virtual void age(Duration /*by*/) {}
  // It has heard of a waiter, where waiters of the strategy tell it.
  [[nodiscard]] virtual bool has_waiter(const std::string& strategy, const std::string& name) = 0;
};

struct ServiceKind {
  std::string name;
  std::vector<std::string> strategies;
  // Strategies that differ in little from one of those. A sanitizer would see the same once more.
  std::vector<std::string> variants = {};
  // With TLS and nothing else, where a certificate is asked for; openssl calls so whom it is for.
  std::function<std::unique_ptr<Service>(const std::string& tls_names)> start;
  // How an URL chooses one.
  std::function<std::string(const std::string& strategy)> parameters = [](const std::string& strategy) {
    return "strategy=" + strategy;
  };
  // Ends after every test would have failed: what is free before then was freed.
  Duration long_lease = 10min;
  // Tests wait to see its end.
  Duration short_lease = 2s;
  // What ends long before far_too_long.
  Duration connect_timeout = 1s;
  // Part of each first request about a lock, as it is sent; empty where answers to such are judged in another way.
  std::string lock_request = {};
  bool has_tls = true;
  // A free lock leaves something that could be forgotten.
  bool keeps_free_locks = true;
  // The service ends what a connection holds together with the connection.
  std::function<bool(const std::string& strategy)> ends_with_connection = [](const std::string&) { return false; };

  // A server that is none, at this port.
  std::function<std::string(std::uint16_t port)> hostile_url;
  // Servers send first.
  bool greets = false;
  // Lets everybody in, and gives this answer to what is asked then.
  std::function<ScriptedServer::Script(ScriptedServer::Answer)> polite_until_asked;
  std::vector<Hostility> hostilities;
  // The most that a client takes in from a connection before it gives up, the buffers of the kernel included.
  std::uint64_t most_accepted = std::uint64_t{64} << 20U;
};

// Defined by each program.
const ServiceKind& service_kind();

// The strategies that a test of each is run for; none if the test does not apply to the service.
inline std::vector<std::string> tested_strategies(bool applies = true) {
  if (!applies) return {};
  std::vector<std::string> all = service_kind().strategies;
  if (!dlock::test::sanitized) all.insert(all.end(), service_kind().variants.begin(), service_kind().variants.end());
  return wanted_strategies(service_kind().name, std::move(all));
}

// For every strategy. The tests of a process share a server, until one fails.
class Room : public ::testing::TestWithParam<std::string> {
 public:
  // As names of tests have it.
  static std::string strategy_name(const ::testing::TestParamInfo<std::string>& info) {
    std::string name = info.param;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
  }

 protected:
  explicit Room(const std::string& tls_names = {}) : service(running(tls_names)) { service.clear(); }
  void TearDown() override {
    if (HasFailure()) services().clear();
  }

  [[nodiscard]] static std::string strategy() { return service_kind().parameters(GetParam()); }
  [[nodiscard]] static bool ends_with_connection() { return service_kind().ends_with_connection(GetParam()); }
  [[nodiscard]] static ClientOptions patient() { return {.lease = service_kind().long_lease}; }
  [[nodiscard]] static ClientOptions impatient(Duration lease = service_kind().long_lease) {
    return {.lease = lease,
            .response_timeout = 1s,
            .connect_timeout = service_kind().connect_timeout,
            .close_timeout = 300ms};
  }
  [[nodiscard]] Client steady(ClientOptions options = patient()) const {
    return connect_patiently(service.url_at(service.port(), strategy()), std::move(options));
  }
  // Through the proxy.
  [[nodiscard]] Client disturbed(ClientOptions options = patient()) const {
    return connect_patiently(service.url_at(proxy.port(), strategy()), std::move(options));
  }
  // From now on nothing passes, and connections are refused.
  void cut(rig::Ending ending = rig::Ending::reset) {
    proxy.refuse(true);
    proxy.drop(ending);
  }
  void heal() { proxy.refuse(false); }

  void await_waiter(const std::string& name) {
    await("nobody waits for " + name, [&] { return service.has_waiter(GetParam(), name); });
  }
  // What is cleaned up in the background is gone at some time.
  void await_no_residue(const std::string& name) {
    await("something is left of " + name, [&] { return service.residue(GetParam(), name) == 0; });
  }
  // For whoever comes next.
  void expect_free_and_clean(const std::string& name) {
    Contender other(steady(), name);
    EXPECT_TRUE(take(other.lock).release());
    await_no_residue(name);
  }
  // Its connections stand, and all that it needs of the service is there.
  static void warm_up(const Client& client) {
    DistributedLock lock = client.make_lock("warm");
    std::error_code late;  // of an impatient client on a busy machine; the lock is freed all the same
    (void)take(lock).release(late);
  }

 private:
  static std::map<std::string, std::unique_ptr<Service>>& services() {
    static std::map<std::string, std::unique_ptr<Service>> all;
    return all;
  }
  static Service& running(const std::string& tls_names) {
    auto& service = services()[tls_names];
    if (!service) service = service_kind().start(tls_names);
    return *service;
  }

 protected:
  Service& service;
  rig::TcpProxy proxy{rig::Endpoint::loopback(service.port())};
};

}  // namespace dlock::test
