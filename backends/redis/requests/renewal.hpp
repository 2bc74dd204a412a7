// Extends the lease of a lock, also on the replicas that replicas_ack asks for.
#pragma once

#include <string>

#include <dlock/spi/backend.hpp>

#include "backends/redis/topology/topology.hpp"

namespace dlock::redis {

// client: this client's part of its values. Answers within the response timeout or a quarter of the lease, whichever is
// shorter. The topology outlives it. In tasks only.
void renew(Topology& topology, const std::string& client, const Grant& grant, Backend::RenewHandler done);

}  // namespace dlock::redis
