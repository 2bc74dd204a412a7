// Numbers and measurements as text for people.
#pragma once

#include <string>
#include <string_view>

#include "bench/report/result.hpp"

namespace dlock::bench {

// Shown for missing measurements.
inline constexpr const char* not_measured = "-";

// With three significant digits: "45.1 µs", "1.30 ms", "2.00 s" for "us"; "84.2 k/s" for "1/s"; "1.43 kB" for "B"; for
// any other unit, or none, the number and the unit.
[[nodiscard]] std::string quantity_text(double value, std::string_view unit);

// For a round value: "200 µs", "1 ms", "50 k/s".
[[nodiscard]] std::string round_text(double value, std::string_view unit);

// "us" instead of "µs", for terminals without that letter, and for scripts.
[[nodiscard]] std::string plain_units(std::string text);

// "1 waiter", "256 waiters", "10 000 callers".
[[nodiscard]] std::string count_text(double count, std::string_view noun);

// "18 min 5 s".
[[nodiscard]] std::string duration_text(double seconds);

// "throughput, 64 callers, 95 % reads", "latency, 5 ms round trip"
[[nodiscard]] std::string name_of(std::string scenario, const Parameters& parameters);
// The same, with ", by hand" for a floor.
[[nodiscard]] std::string name_of(const Measurement& measurement);

// For a terminal: without control characters, which it might execute.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace dlock::bench
