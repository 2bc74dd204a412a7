// zookeeper://
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/targets/service_target.hpp"

namespace dlock::bench {

[[nodiscard]] const std::vector<std::string>& zookeeper_strategies();
[[nodiscard]] std::unique_ptr<ServiceTarget> make_zookeeper_target(const rig::UrlText& url,
                                                                   const std::string& strategy);

}  // namespace dlock::bench
