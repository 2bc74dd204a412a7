// The targets of a URL.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "bench/targets/target.hpp"

namespace dlock::bench {

// One target for each strategy of the service, or only the one that the URL names. Connects to the service, within the
// limit, and acquires and releases a lock, so that an unusable service is noticed at once. Throws Error, its message
// without password; Error(invalid_argument) for an invalid URL.
[[nodiscard]] std::vector<std::unique_ptr<Target>> make_targets(const std::string& url, std::chrono::seconds limit);

// The URLs to try if the user gives none: DLOCK_URL, the embedded backends, and each server backend on this machine at
// its usual port.
[[nodiscard]] std::vector<std::string> usual_urls();

}  // namespace dlock::bench
