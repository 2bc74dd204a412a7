#include "bench/targets/distant_target.hpp"

namespace dlock::bench {

DistantTarget::DistantTarget(ServiceTarget& near, const std::vector<rig::HostPort>& hosts,
                             std::chrono::nanoseconds round_trip)
    : near_(near), way_(hosts) {
  info_ = near.info();
  for (rig::TcpProxy* const proxy : way_.proxies()) proxy->set({.delay = round_trip / 2});
}

}  // namespace dlock::bench
