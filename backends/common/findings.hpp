// Findings that every backend across a network reports.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include <dlock/info.hpp>

namespace dlock::common {

// "3.5.10-rc.1": 3, 5 and 10. Missing or unreadable numbers count as 0.
using Version = std::array<int, 3>;
[[nodiscard]] Version parse_version(std::string_view text);

[[nodiscard]] Finding server_answered(const std::string& endpoint, std::chrono::nanoseconds within);

// server, ours: in seconds since 1970, read up to a few seconds apart. If they differ by more, the finding has this
// severity, and names the consequence.
[[nodiscard]] Finding compared_clocks(std::int64_t server, std::int64_t ours, Finding::Severity severity,
                                      std::string_view consequence);

// "127.0.0.1:5432/db", "localhost:3306", "[::1]:1".
[[nodiscard]] bool is_this_machine(std::string_view endpoint);
// Without encryption an attacker on the network path can forge messages, and so the locks. and_so: the rest of the
// sentence, with what to do about it.
[[nodiscard]] Finding not_encrypted(bool this_machine, std::string_view and_so);

}  // namespace dlock::common
