// What a redis:// or rediss:// URL says.
//
//   redis[s]://[[user]:password@]host[:6379][/db][?strategy=...&prefix=...&replicas_ack=...&tls_ca=...]
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <dlock/backend.hpp>

#include "backends/common/host.hpp"
#include "backends/common/tls.hpp"

namespace dlock::redis {

// How waiters wait.
enum class Strategy {
  queue,      // in a queue at the server; a release hands the lock to the first
  broadcast,  // a release tells everybody, whoever comes first gets it
  poll,       // ask again and again; needs no right to publish or subscribe
};

[[nodiscard]] std::string_view to_string(Strategy strategy) noexcept;

struct Options {
  common::Host host{.name = "localhost", .port = 6379};
  std::optional<std::string> user;
  std::optional<std::string> password;
  std::uint32_t db = 0;
  std::string prefix = "dlock:";
  Strategy strategy = Strategy::queue;
  std::uint32_t replicas_ack = 0;
  std::optional<common::TlsOptions> tls;

  std::string client_name;  // for CLIENT LIST
  std::string holder;
  std::chrono::nanoseconds response_timeout{};
  std::chrono::nanoseconds connect_timeout{};

  // "host:port", for messages.
  [[nodiscard]] std::string endpoint() const { return host.to_string(); }
};

// Throws Error(invalid_argument) naming the part that is wrong.
[[nodiscard]] Options parse_options(const BackendConfig& config);

}  // namespace dlock::redis
