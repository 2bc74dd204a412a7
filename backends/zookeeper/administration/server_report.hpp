// What the servers say about themselves, and what is to be thought of it. No I/O.
#pragma once

#include <optional>
#include <string>
#include <string_view>
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

struct ServerStatus {
  std::string version;  // "3.8.0"
  std::string mode;     // "standalone", "leader", "follower", "observer", "read-only"
};

// nullopt: no such answer, for instance because the server has lost its ensemble.
[[nodiscard]] std::optional<ServerStatus> read_srvr(std::string_view text);
// Whether the server does not answer this word.
[[nodiscard]] bool is_refusal(std::string_view text) noexcept;

// Of the servers that the URL names, in its order.
[[nodiscard]] std::vector<Finding> judge(const std::vector<ServerReport>& reports);

}  // namespace dlock::zookeeper
