#include "bench/targets/distant_target.hpp"

#include "bench/targets/network.hpp"

namespace dlock::bench {

DistantTarget::DistantTarget(ServiceTarget& near, const std::vector<HostPort>& hosts,
                             std::chrono::nanoseconds round_trip)
    : near_(near) {
  info_ = near.info();
  for (const HostPort& each : hosts) {
    const util::UniqueFd probe = connect_to(each, answer_limit);
    proxies_.push_back(std::make_unique<test::TcpProxy>(test::Endpoint::at(peer_address(probe.get()), each.port)));
    proxies_.back()->set({.delay = round_trip / 2});
  }
}

UrlText DistantTarget::moved(const std::string& url) const {
  UrlText moved(url);
  std::string hosts;
  for (const auto& proxy : proxies_)
    hosts += (hosts.empty() ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(proxy->port());
  // As PostgreSQL's may say it instead.
  moved.remove("host");
  moved.remove("port");
  moved.set_hosts(hosts);
  return moved;
}

}  // namespace dlock::bench
