// What endangers locks in a cluster.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include <dlock/backend.hpp>
#include <dlock/info.hpp>

#include "backends/redis/cluster/cluster.hpp"
#include "backends/redis/cluster/slot_map.hpp"

namespace dlock::redis {

// What there is to say about each master, and about the cluster. Answers within three times the response timeout.
// Leaves nothing behind. In tasks only.
void diagnose(Cluster& cluster, Backend::Handler<std::vector<Finding>> done);

// node_timeout: if it could be asked for. No I/O.
[[nodiscard]] std::vector<Finding> judge_cluster(const std::vector<SlotRange>& ranges, const Options& options,
                                                 std::optional<std::chrono::milliseconds> node_timeout);

}  // namespace dlock::redis
