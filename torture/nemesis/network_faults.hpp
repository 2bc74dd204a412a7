// Faults of the network between the workers and the service, made by proxies.
#pragma once

#include <cstdint>
#include <vector>

#include "torture/nemesis/nemesis.hpp"
#include "torture/rig/tcp_proxy.hpp"

namespace dlock::torture {

// Affects all proxies at once, as one network. They must outlive the faults.
[[nodiscard]] std::vector<Fault> network_faults(std::vector<rig::TcpProxy*> proxies, std::uint64_t seed);

}  // namespace dlock::torture
