// What the servers say about themselves, and what is to be thought of it. No I/O.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <dlock/error.hpp>
#include <dlock/info.hpp>

#include "backends/zookeeper/options.hpp"

namespace dlock::zookeeper {

// What one server has answered.
struct ServerReport {
  Host host;
  std::optional<Failure> failure = std::nullopt;  // it could not be asked at all
  std::string srvr = {};                          // empty: nothing yet
};

// Of the servers that the URL names, in its order.
[[nodiscard]] std::vector<Finding> judge(const std::vector<ServerReport>& reports);

}  // namespace dlock::zookeeper
