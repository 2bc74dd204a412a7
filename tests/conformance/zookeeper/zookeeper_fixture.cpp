#include "zookeeper/zookeeper_fixture.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "backends/zookeeper/node_name.hpp"
#include "zookeeper/zookeeper_service.hpp"

namespace dlock::conformance {

namespace {

using test::Endpoint;
using test::TcpProxy;
using test::Traffic;
using test::ZooKeeperClient;

constexpr const char* prefix = "/dlock";

// Short, because tests wait for sessions to end; long enough for a busy machine to keep them alive.
constexpr const char* parameters = "session_timeout=2s";

}  // namespace

ZooKeeperFixture::ZooKeeperFixture(ZooKeeperSetup setup, std::string strategy)
    : strategy_(std::move(strategy)),
      service_(setup == ZooKeeperSetup::standalone ? ZooKeeperService::standalone() : ZooKeeperService::ensemble()),
      disturbed_(new_way()) {}

ZooKeeperFixture::~ZooKeeperFixture() = default;

std::string ZooKeeperFixture::Way::addresses() const {
  std::string list;
  for (const auto& each : proxies) list += (list.empty() ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(each->port());
  return list;
}

void ZooKeeperFixture::Way::cut() const {
  for (const auto& each : proxies) each->refuse(true);
  for (const auto& each : proxies) each->drop();
}

void ZooKeeperFixture::Way::heal() const {
  for (const auto& each : proxies) each->refuse(false);
}

void ZooKeeperFixture::Way::set(const Traffic& traffic) const {
  for (const auto& each : proxies) each->set(traffic);
}

ZooKeeperFixture::Way ZooKeeperFixture::new_way() const {
  Way way;
  for (const std::uint16_t port : service_.ports()) {
    way.proxies.push_back(std::make_unique<TcpProxy>(Endpoint::loopback(port)));
  }
  return way;
}

std::string ZooKeeperFixture::url_of(const std::string& addresses) const {
  return "zookeeper://" + addresses + "?strategy=" + strategy_ + "&" + parameters;
}

std::string ZooKeeperFixture::url() const {
  std::string list;
  for (const std::uint16_t port : service_.ports())
    list += (list.empty() ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(port);
  return url_of(list);
}

Client ZooKeeperFixture::make_client(ClientOptions options, Link link) {
  if (link == Link::disturbed) return connect(url_of(disturbed_.addresses()), std::move(options));
  // So that it can be told from others, and cut off alone.
  steady_.push_back(new_way());
  return connect(url_of(steady_.back().addresses()), std::move(options));
}

std::optional<Missing> ZooKeeperFixture::missing(Feature feature) const {
  if (feature != Feature::step_clock) return std::nullopt;
  return Missing{Missing::Kind::untested, "the clock of a ZooKeeper server cannot be stepped"};
}

void ZooKeeperFixture::kill_hold(const std::string& name) {
  ZooKeeperClient& session = service_.session();
  const std::string path = zookeeper::lock_path(prefix, name);
  const auto node = session.get(path);
  if (node && node->owner != 0) {
    (void)session.remove(path);
    return;
  }
  auto queue = session.children(path).value_or(std::vector<std::string>());
  const auto sequence = [](const std::string& child) {
    return zookeeper::parse_queue_node(zookeeper::Layout::curator, child).sequence;
  };
  const auto first = std::min_element(queue.begin(), queue.end(),
                                      [&](const auto& a, const auto& b) { return sequence(a) < sequence(b); });
  if (first != queue.end()) (void)session.remove(path + "/" + *first);
}

// As when its machine dies: nothing comes from there any more, and the server ends the session when its time is over.
void ZooKeeperFixture::kill_session(Client& client) {
  for (const Way& way : steady_) {
    if (client.url().find(way.addresses()) != std::string::npos) way.cut();
  }
}

void ZooKeeperFixture::stall() {
  disturbed_.set({.mode = Traffic::Mode::hold});
}

void ZooKeeperFixture::resume() {
  disturbed_.set({});
}

void ZooKeeperFixture::cut() {
  disturbed_.cut();
}

void ZooKeeperFixture::heal() {
  disturbed_.heal();
}

void ZooKeeperFixture::lose_next_answer() {
  // A request that says who holds or waits is one that creates its node.
  for (const auto& each : disturbed_.proxies) each->lose_reply_to(":" + std::to_string(::getpid()) + ":");
}

std::size_t ZooKeeperFixture::residue(const std::string& name) {
  ZooKeeperClient& session = service_.session();
  const std::string path = zookeeper::lock_path(prefix, name);
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
