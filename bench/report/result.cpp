#include "bench/report/result.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "bench/measure/statistics.hpp"
#include "bench/report/figures.hpp"

namespace dlock::bench {

namespace {

// What is not a number cannot be put in order.
std::vector<double> usable(std::vector<double> values) {
  std::erase_if(values, [](double each) { return !std::isfinite(each); });
  return values;
}

}  // namespace

const char* to_string(Who who) noexcept {
  switch (who) {
    case Who::same_requests:
      return "same requests";
    case Who::by_hand:
      return "by hand";
    case Who::dlock:
      break;
  }
  return "dlock";
}

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

const Measurement* floor_of(const Report& report, const Measurement& measurement, Who floor) {
  Parameters parameters = measurement.parameters;
  if (auto under_way = parameters.extract(parameter::outstanding)) {
    under_way.key() = parameter::callers;
    parameters.insert(std::move(under_way));
  }
  return report.find(measurement.scenario, measurement.service, floor, parameters);
}

double ratio_to_floor(const Report& report, const Measurement& measurement, Who floor, std::string_view figure) {
  const Measurement* other = floor_of(report, measurement, floor);
  const Figure* mine = measurement.figure(figure);
  const Figure* its = other == nullptr ? nullptr : other->figure(figure);
  if (mine == nullptr || its == nullptr) return 0;
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(mine->repeats.size(), its->repeats.size()); ++i) {
    if (its->repeats[i] > 0) ratios.push_back(mine->repeats[i] / its->repeats[i]);
  }
  return median(usable(std::move(ratios)));
}

}  // namespace dlock::bench
