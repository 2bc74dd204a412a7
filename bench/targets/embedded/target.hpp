// memory:// and file://
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/targets/service_target.hpp"

namespace dlock::bench {

[[nodiscard]] const std::vector<std::string>& memory_strategies();
[[nodiscard]] std::unique_ptr<ServiceTarget> make_memory_target(const rig::UrlText& url, const std::string& strategy);

// In a directory of its own below that of the URL.
[[nodiscard]] std::unique_ptr<ServiceTarget> make_file_target(const rig::UrlText& url);

}  // namespace dlock::bench
