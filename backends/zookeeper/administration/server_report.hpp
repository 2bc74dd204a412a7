// The doctor's findings about the servers' own reports (srvr). No I/O.
#pragma once

#include <string>
#include <vector>

#include <dlock/info.hpp>
#include <dlock/spi/result.hpp>

#include "backends/zookeeper/options.hpp"

namespace dlock::zookeeper {

// The answer of a server to srvr.
struct ServerReport {
  Host host;
  Result<std::string> srvr = std::string();
};

// Of the servers that the URL names, in its order.
[[nodiscard]] std::vector<Finding> judge(const std::vector<ServerReport>& reports);

}  // namespace dlock::zookeeper
