// Locks of any kind, as JSON and for people. The text is made of the JSON, so that both state the same facts.
#pragma once

#include <dlock/capabilities.hpp>
#include <dlock/info.hpp>

#include <chrono>
#include <optional>
#include <string>

#include "cli/json.hpp"

namespace dlock::cli {

using WallTime = std::chrono::sys_time<std::chrono::microseconds>;

// When it was acquired, by the clock of the service, if tokens come from a wall clock: they are the microseconds of
// that moment, or greater if a clock was set back. nullopt: it is free, or that is unknown.
[[nodiscard]] std::optional<WallTime> taken_at(const LockInfo& info, const Capabilities& capabilities);

// "holders" has all of them, even for a kind with at most one.
[[nodiscard]] Json to_json(const LockInfo& info);
// The same, and "since".
[[nodiscard]] Json to_json(const LockInfo& info, const Capabilities& capabilities);

// One lock, one fact per line.
[[nodiscard]] std::string status_text(const Json& lock);
// Locks of one kind, one per line, below the column titles. Empty: there are none.
[[nodiscard]] std::string list_text(const Json& locks);

}  // namespace dlock::cli
