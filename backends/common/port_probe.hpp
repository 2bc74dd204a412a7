// Asks on a connection of its own whether a port speaks TLS.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/result.hpp>

#include "backends/common/tcp_dial.hpp"
#include "util/resolver.hpp"
#include "util/unique_fd.hpp"

namespace dlock::common {

// Shared by the streams of a client.
struct TlsProbing {
  struct Found {
    bool explains = false;  // TLS on one side only explains why the server closed the connection
    TimePoint until;
  };
  std::string greeting;                  // a request that a service without TLS answers
  std::map<std::string, Found> ports{};  // by the names of peers
};

// One probe. Destroying it ends it. In tasks only.
class PortProbe {
 public:
  enum class Answer { none, tls, other };

  // greeting: what to send; empty: the beginning of a TLS handshake. Calls done once, later; it may destroy the probe.
  PortProbe(Executor& executor, const util::Address& address, std::string greeting, std::function<void(Answer)> done);
  PortProbe(const PortProbe&) = delete;
  PortProbe& operator=(const PortProbe&) = delete;
  ~PortProbe();

 private:
  void connected(Result<TcpDial::Connected> result);
  void readable();
  void finish(Answer answer);

  Executor& executor_;
  const std::string bytes_;
  std::function<void(Answer)> done_;
  util::UniqueFd socket_;
  std::unique_ptr<Descriptor> descriptor_;  // destroyed before the socket is closed
  Timer timer_;
  TcpDial dial_;
};

}  // namespace dlock::common
