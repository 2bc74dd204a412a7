// Faults of the network between the workers and the service, made by proxies.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/fault/nemesis/nemesis.hpp"
#include "tests/support/tcp_proxy.hpp"

namespace dlock::fault {

// All proxies at once, as they stand for one network. They must outlive the faults.
[[nodiscard]] std::vector<Fault> network_faults(std::vector<test::TcpProxy*> proxies, std::uint64_t seed);

}  // namespace dlock::fault
