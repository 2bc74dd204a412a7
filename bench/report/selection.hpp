// Finding one's way in a report.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/report/result.hpp"

namespace dlock::bench {

// nullptr: the report does not know it.
[[nodiscard]] const ServiceInfo* service_of(const Report& report, std::string_view label) noexcept;

// Labels of all that is known or was measured, in the order of the report.
[[nodiscard]] std::vector<std::string> labels_of(const Report& report);

[[nodiscard]] std::optional<double> parameter_of(const Measurement& measurement, std::string_view name);

// The median; absent where it was not measured, or is no number.
[[nodiscard]] std::optional<double> median_of(const Measurement* measurement, std::string_view figure);

// Measurements that differ in one parameter.
struct Point {
  double x;
  const Measurement* measurement;
};

// All measurements of a scenario that have that parameter, and these others, by its value.
[[nodiscard]] std::vector<Point> points_of(const Report& report, std::string_view scenario, std::string_view service,
                                           Who who, std::string_view parameter, const Parameters& others = {});

// Acquire and release of a free lock by one caller, here. nullptr: not measured.
[[nodiscard]] const Measurement* latency_of(const Report& report, std::string_view service, Who who) noexcept;
// The first one of that scenario: for scenarios that measure a service once.
[[nodiscard]] const Measurement* only_one_of(const Report& report, std::string_view scenario, std::string_view service,
                                             Who who = Who::dlock) noexcept;
// With the highest number of callers (or of waiters, ...), or the lowest one. nullptr: not measured.
[[nodiscard]] const Measurement* most_of(const std::vector<Point>& points) noexcept;
[[nodiscard]] const Measurement* fewest_of(const std::vector<Point>& points) noexcept;

// All values that a parameter has in measurements of dlock, ascending.
[[nodiscard]] std::vector<double> values_of(const Report& report, std::string_view scenario,
                                            std::string_view parameter);

}  // namespace dlock::bench
