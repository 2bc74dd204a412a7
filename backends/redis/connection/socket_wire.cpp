#include "backends/redis/connection/socket_wire.hpp"

#include <utility>

namespace dlock::redis {

void SocketWire::received(std::string_view bytes) {
  const Lifetime::Watch life = lifetime_.watch();
  reader_.feed(bytes);
  while (auto reply = reader_.next()) {
    events_.received(*std::move(reply));
    if (life.over()) return;
  }
  if (reader_.problem().empty()) return;
  events_.closed({errc::protocol, endpoint_ + " does not speak Redis's protocol: " + reader_.problem()});
}

WireFactory socket_wires(std::shared_ptr<const common::TlsContext> tls) {
  return [tls = std::move(tls), hint = std::make_shared<common::PeerHint>(),
          probing = std::make_shared<common::TlsProbing>(common::TlsProbing{.greeting = "PING\r\n"})](
             Executor& executor, const Options& options, Wire::Events& events) {
    return std::make_unique<SocketWire>(
        executor,
        common::Peer{options.host.name, options.host.port, options.endpoint(), tls.get(), hint.get(), probing.get()},
        events);
  };
}

}  // namespace dlock::redis
