// The errors of a cluster's node that name another one. No I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "backends/common/host.hpp"

namespace dlock::redis {

// A node's host, as named by a different node (`asked`), which gives no name, or "?", if it means itself. nullopt: it
// is invalid.
[[nodiscard]] std::optional<common::Host> node_host(std::string_view name, std::uint16_t port,
                                                    const common::Host& asked);

// "MOVED <slot> <host>:<port>", or ASK.
struct Redirection {
  bool asks = false;  // only this request, after ASKING
  std::uint16_t slot = 0;
  common::Host to;
};
// nullopt: no redirection, or an invalid one. asked: as above.
[[nodiscard]] std::optional<Redirection> read_redirection(std::string_view error, const common::Host& asked);

}  // namespace dlock::redis
