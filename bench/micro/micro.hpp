// Each file of benchmarks registers its own, called by main().
#pragma once

#include <memory>
#include <string>

#include <dlock/dlock.hpp>

namespace bench {

// Acquire and release by one client. name: the prefix of the benchmarks' names.
void register_acquire_release(const std::string& name, std::shared_ptr<const dlock::Client> client);
// Many leases at the same time, on memory://.
void register_leases();

}  // namespace bench
