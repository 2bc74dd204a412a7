#include "bench/report/result.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "bench/measure/statistics.hpp"

namespace dlock::bench {

namespace {

// What is not a number cannot be put in order.
std::vector<double> usable(std::vector<double> values) {
  std::erase_if(values, [](double each) { return !std::isfinite(each); });
  return values;
}

}  // namespace

double Figure::median() const {
  return bench::median(usable(repeats));
}

double Figure::lowest() const {
  const std::vector<double> values = usable(repeats);
  return values.empty() ? 0 : *std::min_element(values.begin(), values.end());
}

double Figure::highest() const {
  const std::vector<double> values = usable(repeats);
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

const Figure* Measurement::figure(std::string_view name) const noexcept {
  const auto found =
      std::find_if(figures.begin(), figures.end(), [&](const Figure& each) { return each.name == name; });
  return found == figures.end() ? nullptr : &*found;
}

const Measurement* Report::find(std::string_view scenario, std::string_view service, Who who,
                                const Parameters& parameters) const noexcept {
  const auto found = std::find_if(measurements.begin(), measurements.end(), [&](const Measurement& each) {
    return each.scenario == scenario && each.service == service && each.who == who && each.parameters == parameters;
  });
  return found == measurements.end() ? nullptr : &*found;
}

double ratio_to_floor(const Report& report, const Measurement& measurement, std::string_view figure) {
  const Measurement* floor = report.find(measurement.scenario, measurement.service, Who::floor, measurement.parameters);
  const Figure* mine = measurement.figure(figure);
  const Figure* its = floor == nullptr ? nullptr : floor->figure(figure);
  if (mine == nullptr || its == nullptr) return 0;
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(mine->repeats.size(), its->repeats.size()); ++i) {
    if (its->repeats[i] > 0) ratios.push_back(mine->repeats[i] / its->repeats[i]);
  }
  return median(usable(std::move(ratios)));
}

}  // namespace dlock::bench
