// What people are shown about locks of any kind.
#pragma once

#include <dlock/capabilities.hpp>
#include <dlock/info.hpp>
#include <dlock/lock_kind.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace dlock::cli {

using WallTime = std::chrono::sys_time<std::chrono::microseconds>;

// One lock, a fact a line.
[[nodiscard]] std::string status_text(const LockInfo& info, std::optional<WallTime> taken = std::nullopt);

// Locks of one kind, one a line below a line of titles. Empty: there are none.
[[nodiscard]] std::string list_text(const std::vector<LockInfo>& locks, LockKind kind);

// All who hold it, also where a kind has one holder at most.
[[nodiscard]] std::vector<HolderInfo> all_holders(const LockInfo& info);

// "2025-11-21T10:11:12Z", for JSON.
[[nodiscard]] std::string utc_text(WallTime at);

// When it was taken, by the clock of the service, as its token tells where tokens come from a wall clock: they are the
// microseconds of that moment, or greater where a clock was set back. nullopt: it is free, or that is not known.
[[nodiscard]] std::optional<WallTime> taken_at(const LockInfo& info, const Capabilities& capabilities);

}  // namespace dlock::cli
