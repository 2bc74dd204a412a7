// Connections to the master of a service, wherever it is.
#pragma once

#include <memory>

#include "backends/redis/connection/wire.hpp"
#include "backends/redis/sentinel/sentinels.hpp"

namespace dlock::redis {

// Each connection locates the master first, and breaks when another server becomes the master. wires: make connections
// to a server.
[[nodiscard]] WireFactory sentinel_wires(std::shared_ptr<Sentinels> sentinels, WireFactory wires);

}  // namespace dlock::redis
