// redis://, redis-sentinel://, redis-cluster://, and their forms over TLS
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/targets/service_target.hpp"

namespace dlock::bench {

[[nodiscard]] const std::vector<std::string>& redis_strategies();
[[nodiscard]] std::unique_ptr<ServiceTarget> make_redis_target(const rig::UrlText& url, const std::string& strategy);

}  // namespace dlock::bench
