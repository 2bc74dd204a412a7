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

// When it was taken, by the clock of the service, where tokens come from a wall clock: they are the microseconds of
// that moment, or greater where a clock was set back. nullopt: it is free, or that is not known.
[[nodiscard]] std::optional<WallTime> taken_at(const LockInfo& info, const Capabilities& capabilities);

// "holders" are all, also where a kind has one holder at most.
[[nodiscard]] Json to_json(const LockInfo& info);
// The same, and "since".
[[nodiscard]] Json to_json(const LockInfo& info, const Capabilities& capabilities);

// One lock, a fact a line.
[[nodiscard]] std::string status_text(const Json& lock);
// Locks of one kind, one a line below a line of titles. Empty: there are none.
[[nodiscard]] std::string list_text(const Json& locks);

}  // namespace dlock::cli
