#include "zookeeper/zookeeper_fixture.hpp"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "backends/zookeeper/nodes/node_name.hpp"
#include "backends/zookeeper/strategies/queue_walk.hpp"
#include "suite/wait.hpp"
#include "tests/support/sanitizers.hpp"
#include "zookeeper/zookeeper_service.hpp"

namespace dlock::conformance {

namespace {

using rig::Endpoint;
using rig::TcpProxy;
using rig::Traffic;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::ZooKeeperClient;

constexpr const char* prefix = "/dlock";

constexpr seconds steady_session(10);

// Where the way to the servers is cut, tests wait for sessions to end, so those are short, but not shorter than a lease
// that a test asks for. All others outlast the moment in which a busy machine answers a thousand questions: the client
// library gives up a server that does not answer for two thirds of the session.
milliseconds brief_session(ZooKeeperSetup setup, const ClientOptions& options) {
  const milliseconds shortest =
      setup == ZooKeeperSetup::standalone && !dlock::test::sanitized ? seconds(2) : seconds(4);
  if (options.lease >= ClientOptions().lease) return shortest;
  return std::max(shortest, std::chrono::ceil<milliseconds>(options.lease.value()));
}

std::string address_list(const std::vector<std::unique_ptr<TcpProxy>>& proxies) {
  std::vector<std::uint16_t> ports;
  for (const auto& each : proxies) ports.push_back(each->port());
  return addresses_of(ports);
}

}  // namespace

ZooKeeperFixture::ZooKeeperFixture(ZooKeeperSetup setup, std::string strategy)
    : setup_(setup),
      strategy_(std::move(strategy)),
      service_(setup == ZooKeeperSetup::standalone ? ZooKeeperService::standalone() : ZooKeeperService::ensemble()) {
  for (const std::uint16_t port : service_.ports()) {
    disturbed_.push_back(std::make_unique<TcpProxy>(Endpoint::loopback(port)));
  }
}

ZooKeeperFixture::~ZooKeeperFixture() = default;

std::string ZooKeeperFixture::url_of(const std::string& addresses, std::chrono::milliseconds session) const {
  return "zookeeper://" + addresses + "?strategy=" + strategy_ + "&session_timeout=" + std::to_string(session.count()) +
         "ms";
}

std::string ZooKeeperFixture::url() const {
  return "zookeeper://" + addresses_of(service_.ports()) + "?strategy=" + strategy_;
}

Client ZooKeeperFixture::make_client(ClientOptions options, Link link) {
  const milliseconds session = brief_session(setup_, options);
  if (link == Link::disturbed) {
    longest_disturbed_ = std::max(longest_disturbed_, session);
    return connect(url_of(address_list(disturbed_), session), std::move(options));
  }
  // Nobody who is going to die says good-bye for long. It has a way of its own, so that it can be cut off for good.
  if (options.close_timeout >= ClientOptions().close_timeout) {
    return connect(url_of(addresses_of(service_.ports()), steady_session), std::move(options));
  }
  Proxies& way = mortal_.emplace_back();
  for (const std::uint16_t port : service_.ports()) {
    way.push_back(std::make_unique<TcpProxy>(Endpoint::loopback(port)));
  }
  return connect(url_of(address_list(way), session), std::move(options));
}

std::optional<Missing> ZooKeeperFixture::missing(Feature feature) const {
  if (feature == Feature::step_clock) {
    return Missing{Missing::Kind::untested, "the clock of a ZooKeeper server cannot be stepped"};
  }
  return std::nullopt;
}

// The first of the queue, or as many as hold it together; or the lock's own node.
std::vector<std::string> ZooKeeperFixture::holder_paths(LockKind kind, const std::string& name) const {
  ZooKeeperClient& session = service_.session();
  const std::string path = zookeeper::lock_path(prefix, name, kind);
  const auto node = session.get(path);
  if (node && node->owner != 0) return {path};
  const auto children = session.children(path).value_or(std::vector<std::string>());
  std::vector<std::string> paths;
  for (const auto& each : zookeeper::judge_queue(zookeeper::Layout::curator, path, children, kind).holders()) {
    paths.push_back(path + "/" + std::string(each.node));
  }
  return paths;
}

void ZooKeeperFixture::kill_hold(LockKind kind, const std::string& name) {
  for (const std::string& path : holder_paths(kind, name)) (void)service_.session().remove(path);
}

void ZooKeeperFixture::kill_session(Client& client) {
  const auto way = std::find_if(mortal_.begin(), mortal_.end(), [&](const Proxies& each) {
    return client.url().find(address_list(each)) != std::string::npos;
  });
  if (way == mortal_.end()) throw std::logic_error("this client was not made to die");
  // Which session it has shows by a node that it makes.
  constexpr const char* mark = "dlock-conformance/doomed";
  const Lease lease = client.make_lock(mark).acquire({.wait = guard()});
  // While it is sure to be there: once cut off, the session ends by itself, too.
  const std::vector<std::string> node = holder_paths(LockKind::lock, mark);
  if (node.empty()) throw std::runtime_error("the session to be ended has no node");
  cut(*way);
  test::end_session_of(addresses_of(service_.ports()), node.front());
}

void ZooKeeperFixture::stall() {
  for (const auto& each : disturbed_) each->set({.mode = Traffic::Mode::hold});
}

void ZooKeeperFixture::resume() {
  for (const auto& each : disturbed_) each->set({});
}

void ZooKeeperFixture::delay_answers(std::chrono::nanoseconds by) {
  for (const auto& each : disturbed_) each->set(rig::Direction::to_client, {.delay = by});
}

std::chrono::nanoseconds ZooKeeperFixture::age_of_renewals() const {
  return longest_disturbed_ / 4;  // a leader hears late of the sessions that others serve
}

void ZooKeeperFixture::cut() {
  cut(disturbed_);
}

void ZooKeeperFixture::cut(const Proxies& way) {
  for (const auto& each : way) each->refuse(true);
  for (const auto& each : way) each->drop();
}

void ZooKeeperFixture::heal() {
  for (const auto& each : disturbed_) each->refuse(false);
}

void ZooKeeperFixture::lose_next_answer() {
  // A request that says who holds or waits is one that creates its node.
  for (const auto& each : disturbed_) each->lose_reply_to(":" + std::to_string(::getpid()) + ":");
}

std::size_t ZooKeeperFixture::residue(LockKind kind, const std::string& name) {
  ZooKeeperClient& session = service_.session();
  const std::string path = zookeeper::lock_path(prefix, name, kind);
  const auto node = session.get(path);
  if (!node) return 0;
  return (node->owner != 0 ? 1 : 0) + session.children(path).value_or(std::vector<std::string>()).size();
}

std::uint64_t ZooKeeperFixture::requests() {
  return static_cast<std::uint64_t>(service_.requests());
}

void ZooKeeperFixture::restart() {
  service_.restart();
}

}  // namespace dlock::conformance
