// The options in the URL of one server (redis[s]), of a service with sentinels, or of a cluster.
//
//   redis[s]://[[user]:password@]host[:6379][/db][?strategy=...&prefix=...&replicas_ack=...&allow_replica=1
//       &password_file=...&tls_ca=...]
//   redis[s]-sentinel://[[user]:password@]host[:26379][,host[:26379]...][/db]?service_name=...
//       [&sentinel_user=...&sentinel_password[_file]=...&sentinel_tls=on|off&replicas_ack=n|all&replicas_min=n, and as
//       above]
//   redis[s]-cluster://[[user]:password@]host[:6379][,host[:6379]...][?as the first, without allow_replica]
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/spi/backend.hpp>

#include "backends/common/host.hpp"
#include "backends/common/password_file.hpp"
#include "backends/common/tls.hpp"

namespace dlock::redis {

// How waiters wait.
enum class Strategy {
  queue,      // in a queue at the server; a release hands the lock to the first
  broadcast,  // a release notifies all waiters, the fastest gets the lock
  poll,       // waiters retry; needs no right to publish or subscribe
};

[[nodiscard]] std::string_view to_string(Strategy strategy) noexcept;

// Of the URL and learnt from them, together.
inline constexpr std::size_t most_sentinels = 16;
// Of the URL.
inline constexpr std::size_t most_nodes_named = 100;

// Sentinels, which know where the server is: the master of a service.
struct SentinelOptions {
  std::string service;
  std::vector<common::Host> hosts;
  std::optional<std::string> user;
  std::optional<std::string> password;
  std::optional<common::PasswordFile> password_file;
  std::optional<common::TlsOptions> tls;
  // replicas_ack=all: as many as the sentinels list, and no fewer than Options::replicas_ack.
  bool all_replicas = false;
};

// Nodes of a cluster, any of which knows the others.
struct ClusterOptions {
  std::vector<common::Host> hosts;
};

struct Options {
  common::Host host{.name = "localhost", .port = 6379};  // unknown if there are sentinels
  std::optional<std::string> user;
  std::optional<std::string> password;
  std::optional<common::PasswordFile> password_file;  // instead of the password
  std::uint32_t db = 0;
  std::string prefix = "dlock:";
  Strategy strategy = Strategy::queue;
  std::uint32_t replicas_ack = 0;
  std::optional<common::TlsOptions> tls;
  std::optional<SentinelOptions> sentinel;
  std::optional<ClusterOptions> cluster;  // host is the first of them, or the node that a connection leads to
  // Any server may grant locks, even a replica. Also set for connections to sentinels.
  bool any_role = false;

  std::string client_name;  // for CLIENT LIST
  std::string holder;
  std::chrono::nanoseconds lease{};  // of a lock, unless its caller says otherwise
  std::chrono::nanoseconds response_timeout{};
  std::chrono::nanoseconds connect_timeout{};

  // Each connection verifies that its server is a master. (A replica in a cluster grants nothing: it redirects.)
  [[nodiscard]] bool needs_master() const noexcept { return !any_role && !cluster; }
  // "host:port", or the service's name, for messages.
  [[nodiscard]] std::string endpoint() const { return sentinel ? sentinel->service : host.to_string(); }
};

// Throws Error(invalid_argument) naming the part that is wrong.
[[nodiscard]] Options parse_options(const BackendConfig& config);

}  // namespace dlock::redis
