// The dangers to locks in a cluster.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <dlock/info.hpp>
#include <dlock/spi/backend.hpp>

#include "backends/redis/cluster/cluster.hpp"
#include "backends/redis/cluster/slot_map.hpp"

namespace dlock::redis {

// Findings about each master, and about the cluster. Answers within twice the response timeout. Leaves nothing behind.
// In tasks only.
void diagnose(Cluster& cluster, Backend::Handler<std::vector<Finding>> done);

struct ClusterState {
  std::vector<SlotRange> ranges;
  // Of each master by its address, and after which time a silent node counts as down; as far as the nodes answered.
  std::map<std::string, std::uint64_t> replicas = {};
  std::optional<std::chrono::milliseconds> node_timeout = std::nullopt;
};
// No I/O.
[[nodiscard]] std::vector<Finding> judge_cluster(const ClusterState& state, const Options& options);

}  // namespace dlock::redis
