// A path to a service through proxies of this process.
#pragma once

#include <memory>
#include <vector>

#include "torture/rig/tcp_proxy.hpp"
#include "torture/rig/url_text.hpp"

namespace dlock::rig {

// The service's hosts that can get a proxy. Empty if it is not reached over the network, or if the client would compare
// the proxy's name with the server's certificate.
[[nodiscard]] std::vector<HostPort> hosts_for_proxies(const UrlText& url);

class Detour {
 public:
  // Connects to each host once, to find the address that answers. Throws std::runtime_error if none does.
  explicit Detour(const std::vector<HostPort>& hosts);

  // One for each host.
  [[nodiscard]] std::vector<TcpProxy*> proxies() const;
  // The URL with the proxies in place of its hosts.
  [[nodiscard]] UrlText through(UrlText url) const;

 private:
  std::vector<std::unique_ptr<TcpProxy>> proxies_;
};

}  // namespace dlock::rig
