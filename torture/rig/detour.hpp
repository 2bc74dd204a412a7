// Another way to a service: past proxies of our own.
#pragma once

#include <memory>
#include <vector>

#include "torture/rig/tcp_proxy.hpp"
#include "torture/rig/url_text.hpp"

namespace dlock::rig {

// The hosts of the service in front of which proxies can stand. None where it is not reached over the network, or where
// the client would compare the proxy's name with the server's certificate.
[[nodiscard]] std::vector<HostPort> hosts_for_proxies(const UrlText& url);

class Detour {
 public:
  // Connects to each host once, to see which of its addresses answers. Throws std::runtime_error where none does.
  explicit Detour(const std::vector<HostPort>& hosts);

  // One for each host.
  [[nodiscard]] std::vector<TcpProxy*> proxies() const;
  // The URL with the proxies in place of its hosts.
  [[nodiscard]] UrlText through(UrlText url) const;

 private:
  std::vector<std::unique_ptr<TcpProxy>> proxies_;
};

}  // namespace dlock::rig
