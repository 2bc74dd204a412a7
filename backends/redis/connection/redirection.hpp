// The errors of a cluster's node that name another one. No I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "backends/common/host.hpp"

namespace dlock::redis {

// The host of a node as another one tells it. asked: the node that told; it tells no name, or "?", where it means
// itself. nullopt: it makes no sense.
[[nodiscard]] std::optional<common::Host> node_host(std::string_view name, std::uint16_t port,
                                                    const common::Host& asked);

// "MOVED <slot> <host>:<port>", or ASK.
struct Redirection {
  bool asks = false;  // only this once, and after ASKING
  std::uint16_t slot = 0;
  common::Host to;
};
// nullopt: it is none, or makes no sense. asked: as above.
[[nodiscard]] std::optional<Redirection> read_redirection(std::string_view error, const common::Host& asked);

}  // namespace dlock::redis
