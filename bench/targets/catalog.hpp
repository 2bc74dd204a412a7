// Which targets there are behind a URL.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "bench/targets/target.hpp"

namespace dlock::bench {

// One target for each strategy of the service, or only that which the URL names. Reaches the service, within the limit,
// and takes and releases a lock, so that a service that cannot be used is known at once. Throws Error, its message
// without password; Error(invalid_argument) for a URL that is wrong.
[[nodiscard]] std::vector<std::unique_ptr<Target>> make_targets(const std::string& url, std::chrono::seconds limit);

// The URLs that are tried if the user gives none: DLOCK_URL, the embedded backends, and each server backend on this
// machine at its usual port.
[[nodiscard]] std::vector<std::string> usual_urls();

}  // namespace dlock::bench
