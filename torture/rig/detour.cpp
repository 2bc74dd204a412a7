#include "torture/rig/detour.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "torture/rig/network.hpp"

namespace dlock::rig {

namespace {

constexpr std::chrono::seconds answer_limit{10};

std::vector<HostPort> postgres_hosts(const UrlText& url) {
  // With an authority and no mode, the host's name is verified as well.
  if (url.parameter("sslmode").value_or(url.parameter("sslrootcert") ? "verify-full" : "") == "verify-full") return {};
  std::vector<HostPort> all =
      url.hosts({.name = url.parameter("host").value_or("localhost"),
                 .port = static_cast<std::uint16_t>(std::stoul(url.parameter("port").value_or("5432")))});
  const bool by_socket =
      std::any_of(all.begin(), all.end(), [](const auto& each) { return each.name.starts_with('/'); });
  return by_socket ? std::vector<HostPort>() : all;
}

std::vector<HostPort> mysql_hosts(const UrlText& url) {
  if (url.parameter("tls").value_or(url.parameter("tls_ca") ? "verify" : "") == "verify") return {};
  return url.hosts({.name = "localhost", .port = 3306});
}

}  // namespace

std::vector<HostPort> hosts_for_proxies(const UrlText& url) {
  const std::string& scheme = url.original().scheme();
  if (scheme == "redis") return url.hosts({.name = "localhost", .port = 6379});
  if (scheme == "zookeeper") return url.hosts({.name = "localhost", .port = 2181});
  if (scheme == "etcd") return url.hosts({.name = "localhost", .port = 2379});
  if (scheme == "postgresql" || scheme == "postgres") return postgres_hosts(url);
  if (scheme == "mysql" || scheme == "mariadb") return mysql_hosts(url);
  return {};
}

Detour::Detour(const std::vector<HostPort>& hosts) {
  for (const HostPort& each : hosts) {
    const util::UniqueFd probe = connect_to(each, answer_limit);
    proxies_.push_back(std::make_unique<TcpProxy>(Endpoint::at(peer_address(probe.get()), each.port)));
  }
}

std::vector<TcpProxy*> Detour::proxies() const {
  std::vector<TcpProxy*> all;
  for (const auto& proxy : proxies_) all.push_back(proxy.get());
  return all;
}

UrlText Detour::through(UrlText url) const {
  std::string hosts;
  for (const auto& proxy : proxies_)
    hosts += (hosts.empty() ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(proxy->port());
  // PostgreSQL's alternative way to give it.
  url.remove("host");
  url.remove("port");
  url.set_hosts(hosts);
  return url;
}

}  // namespace dlock::rig
