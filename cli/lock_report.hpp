// What people are shown about locks of any kind.
#pragma once

#include <dlock/info.hpp>
#include <dlock/space.hpp>

#include <string>
#include <vector>

namespace dlock::cli {

// One lock, a fact a line.
[[nodiscard]] std::string status_text(const LockInfo& info);

// Locks of one kind, one a line below a line of titles. Empty: there are none.
[[nodiscard]] std::string list_text(const std::vector<LockInfo>& locks, Space space);

// All who hold it, also where a kind has one holder at most.
[[nodiscard]] std::vector<HolderInfo> all_holders(const LockInfo& info);

}  // namespace dlock::cli
