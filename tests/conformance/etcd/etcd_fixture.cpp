#include "etcd/etcd_fixture.hpp"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "suite/wait.hpp"
#include "tests/support/sanitizers.hpp"
#include "torture/rig/hang_guard.hpp"

namespace dlock::conformance {

namespace {

using rig::Endpoint;
using rig::TcpProxy;
using rig::Traffic;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds steady_session(10);

// Where the way to the servers is cut, tests wait for sessions to end, so those are short, but not shorter than a lease
// that a test asks for. All others outlast the moment in which a busy machine answers a thousand questions.
milliseconds brief_session(const ClientOptions& options) {
  constexpr milliseconds shortest = dlock::test::sanitized ? seconds(4) : seconds(2);
  if (options.lease >= ClientOptions().lease) return shortest;
  return std::max<milliseconds>(shortest, std::chrono::ceil<seconds>(options.lease.value()));
}

std::string address_list(const std::vector<std::unique_ptr<TcpProxy>>& proxies) {
  std::string list;
  for (const auto& each : proxies) list += (list.empty() ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(each->port());
  return list;
}

// Started when they are needed first, so that helper processes, which make no fixtures, have no servers.
test::EtcdCluster& servers_of(EtcdSetup setup) {
  switch (setup) {
    case EtcdSetup::single: {
      static test::EtcdCluster single({}, 1);
      return single;
    }
    case EtcdSetup::cluster: {
      static test::EtcdCluster cluster;
      return cluster;
    }
    case EtcdSetup::login: {
      static test::EtcdCluster with_users({.user = test::EtcdUser{}, .options = {"--bcrypt-cost=4"}}, 1);
      return with_users;
    }
    case EtcdSetup::tls: {
      static test::EtcdCluster with_tls({.tls = true, .client_certificates = true}, 1);
      return with_tls;
    }
  }
  throw std::logic_error("no such setup");
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

}  // namespace

EtcdFixture::EtcdFixture(EtcdSetup setup) : setup_(setup), servers_(servers_of(setup)), disturbed_(new_way()) {}

EtcdFixture::~EtcdFixture() = default;

EtcdFixture::Proxies EtcdFixture::new_way() const {
  Proxies way;
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    way.push_back(std::make_unique<TcpProxy>(Endpoint::loopback(servers_.server(i).port())));
  }
  return way;
}

std::string EtcdFixture::url_of(const std::string& addresses, milliseconds session) const {
  return servers_.server(0).url_of(addresses, "session_ttl=" + std::to_string(session.count()) + "ms");
}

std::string EtcdFixture::url() const {
  return servers_.url();
}

Client EtcdFixture::make_client(ClientOptions options, Link link) {
  if (link == Link::disturbed) {
    return connect(url_of(address_list(disturbed_), brief_session(options)), std::move(options));
  }
  // Nobody who is going to die says good-bye for long. It has a way of its own, so that it can be cut off for good.
  if (options.close_timeout >= ClientOptions().close_timeout) {
    return connect(url_of(servers_.addresses(), steady_session), std::move(options));
  }
  const Proxies& way = mortal_.emplace_back(new_way());
  return connect(url_of(address_list(way), brief_session(options)), std::move(options));
}

std::optional<Missing> EtcdFixture::missing(Feature feature) const {
  if (feature == Feature::step_clock) {
    return Missing{Missing::Kind::untested, "the clock of an etcd server cannot be stepped"};
  }
  if (feature == Feature::lose_answer && setup_ == EtcdSetup::tls) {
    return Missing{Missing::Kind::untested, "an acquire cannot be told from the rest of an encrypted stream"};
  }
  return std::nullopt;
}

void EtcdFixture::kill_hold(LockKind kind, const std::string& name) {
  if (!admin_) admin_ = connect(url(), {.label = "conformance-admin"});
  (void)admin_->break_lock(name, kind);
}

void EtcdFixture::kill_session(Client& client) {
  const auto way = std::find_if(mortal_.begin(), mortal_.end(), [&](const Proxies& each) {
    return client.url().find(address_list(each)) != std::string::npos;
  });
  if (way == mortal_.end()) throw std::logic_error("this client was not made to die");
  // Which session it has shows by a key that it makes: <prefix><name>/<lease>.<owner>.
  constexpr const char* mark = "dlock-conformance/doomed";
  const Lease lease = client.make_lock(mark).acquire({.wait = guard()});
  // While it is sure to be there: once cut off, the session ends by itself, too.
  const std::vector<std::string> own = keys(LockKind::lock, mark);
  if (own.empty()) throw std::runtime_error("the session to be ended has no key");
  const std::string node = own.front().substr(own.front().rfind('/') + 1);
  cut(*way);
  try {
    (void)servers_.server(0).ctl({"lease", "revoke", node.substr(0, node.find('.'))});
  } catch (const std::runtime_error& e) {
    // On a busy machine the session may have ended by itself before etcdctl asks.
    if (std::string_view(e.what()).find("requested lease not found") == std::string_view::npos) throw;
  }
}

void EtcdFixture::stall() {
  for (const auto& each : disturbed_) each->set({.mode = Traffic::Mode::hold});
}

void EtcdFixture::resume() {
  for (const auto& each : disturbed_) each->set({});
}

void EtcdFixture::delay_answers(std::chrono::nanoseconds by) {
  delay_ = by;
  for (const auto& each : disturbed_) each->set(rig::Direction::to_client, {.delay = by});
}

// A renewal counts from its keep-alive, once a read that was sent after the answer to that has been answered, too.
std::chrono::nanoseconds EtcdFixture::age_of_renewals() const {
  return delay_;
}

void EtcdFixture::cut() {
  cut(disturbed_);
}

void EtcdFixture::cut(const Proxies& way) {
  for (const auto& each : way) each->refuse(true);
  for (const auto& each : way) each->drop();
}

void EtcdFixture::heal() {
  for (const auto& each : disturbed_) each->refuse(false);
}

// Something else may come from the server before the answer does, so the line must not break at the first byte.
void EtcdFixture::lose_next_answer() {
  for (const auto& each : disturbed_) {
    // Only an acquire asks whether its owner has given up.
    each->before_request(".gone/", [this, proxy = each.get()] {
      const double before = transactions();
      proxy->set(rig::Direction::to_client, {.mode = Traffic::Mode::hold});
      losing_ = std::jthread([this, proxy, before] { end_once_carried_out(*proxy, before); });
    });
  }
}

void EtcdFixture::end_once_carried_out(TcpProxy& proxy, double before) {
  const auto give_up = std::chrono::steady_clock::now() + rig::hang_guard;
  while (transactions() <= before && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
  // The client sends the request again to another member, where it is to be answered: a rule that acted there would
  // wait for this thread, which waits for that proxy.
  for (const auto& each : disturbed_) {
    if (each.get() != &proxy) each->pass();
  }
  proxy.drop();
  proxy.pass();
}

double EtcdFixture::transactions() const {
  double sum = 0;
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    sum += servers_.server(i).figure("grpc_server_handled_total", "grpc_method=\"Txn\"").value_or(0);
  }
  return sum;
}

std::vector<std::string> EtcdFixture::keys(LockKind kind, const std::string& name) const {
  std::string prefix = prefix_of(kind);
  for (const char c : name) prefix += c == '/' ? std::string("%2F") : c == '%' ? std::string("%25") : std::string(1, c);
  return servers_.server(0).keys(prefix + "/");
}

std::size_t EtcdFixture::residue(LockKind kind, const std::string& name) {
  return keys(kind, name).size();
}

std::uint64_t EtcdFixture::requests() {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    sum += static_cast<std::uint64_t>(servers_.server(i).requests());
  }
  return sum;
}

void EtcdFixture::restart() {
  servers_.stop();
  servers_.start();
}

}  // namespace dlock::conformance
