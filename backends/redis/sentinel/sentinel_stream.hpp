// Connections to the master of a service, wherever it is.
#pragma once

#include <memory>

#include "backends/redis/connection/streams.hpp"
#include "backends/redis/sentinel/sentinels.hpp"

namespace dlock::redis {

// Each connection locates the master first, and breaks when another server becomes the master. streams: make
// connections to a server.
[[nodiscard]] StreamFactory sentinel_streams(std::shared_ptr<Sentinels> sentinels, StreamFactory streams);

}  // namespace dlock::redis
