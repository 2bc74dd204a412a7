// What a zookeeper:// URL says.
//
//   zookeeper://h1:2181,h2,h3/chroot
//       [?strategy=...&prefix=...&session_timeout=...&sessions=...&auth=digest:user:password&layout=...]
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

namespace dlock::zookeeper {

// How waiters wait.
enum class Strategy {
  sequential,       // in a queue; each watches the one before it
  sequential_herd,  // in a queue; each watches all of it
  ephemeral,        // one node; all watch it, the fastest creates it next
};

// Whose names the nodes of the queue have; clients of different layouts do not see each other.
enum class Layout { curator, kazoo };

[[nodiscard]] std::string_view to_string(Strategy strategy) noexcept;

using common::Host;

struct Options {
  std::vector<Host> hosts;
  std::string chroot;             // "" or "/a/b"
  std::string prefix = "/dlock";  // "" or "/a/b", below the chroot
  Strategy strategy = Strategy::sequential;
  Layout layout = Layout::curator;
  std::optional<std::string> digest;  // "user:password"; never shown
  std::chrono::milliseconds session_timeout{};
  std::size_t sessions = 4;  // at most, for a client that is busy

  std::string holder;
  std::chrono::nanoseconds response_timeout{};
  std::chrono::nanoseconds connect_timeout{};

  // "h1:2181,h2:2181/chroot", for messages.
  [[nodiscard]] std::string endpoint() const { return common::to_string(hosts) + chroot; }
  // The same for the client library, which does not know brackets.
  [[nodiscard]] std::string connect_string() const;
  // Why no lock can have that name.
  [[nodiscard]] std::optional<Failure> problem_with(std::string_view lock_name) const;
};

// Throws Error(invalid_argument) naming the part that is wrong.
[[nodiscard]] Options parse_options(const BackendConfig& config);

}  // namespace dlock::zookeeper
