#include "backends/redis/connection/streams.hpp"

#include <utility>

namespace dlock::redis {

StreamFactory tcp_streams(std::shared_ptr<const common::TlsContext> tls) {
  return [tls = std::move(tls), hint = std::make_shared<common::PeerHint>(),
          probing = std::make_shared<common::TlsProbing>(common::TlsProbing{.greeting = "PING\r\n"})](
             Executor& executor, const Options& options, common::Stream::Events& events) {
    return std::make_unique<common::TcpStream>(
        executor,
        common::Peer{options.host.name, options.host.port, options.endpoint(), tls.get(), hint.get(), probing.get()},
        events);
  };
}

}  // namespace dlock::redis
