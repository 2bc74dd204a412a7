// What nodes of a cluster say about which node has which slot. No I/O.
#pragma once

#include <cstdint>
#include <vector>

#include <dlock/spi/result.hpp>

#include "backends/common/host.hpp"
#include "backends/redis/connection/reply.hpp"

namespace dlock::redis {

// Slots of one master.
struct SlotRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;
  common::Host master;
};

// Reads the answer to CLUSTER SLOTS. asked: a node that does not know its own address means that one.
[[nodiscard]] Result<std::vector<SlotRange>> read_slots(const Reply& reply, const common::Host& asked);

}  // namespace dlock::redis
