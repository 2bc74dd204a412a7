#include "bench/report/selection.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "bench/report/figures.hpp"

namespace dlock::bench {

const ServiceInfo* service_of(const Report& report, std::string_view label) noexcept {
  const auto found = std::find_if(report.services.begin(), report.services.end(),
                                  [&](const ServiceInfo& each) { return each.label == label; });
  return found == report.services.end() ? nullptr : &*found;
}

std::vector<std::string> labels_of(const Report& report) {
  std::vector<std::string> labels;
  const auto add = [&](const std::string& label) {
    if (std::find(labels.begin(), labels.end(), label) == labels.end()) labels.push_back(label);
  };
  for (const ServiceInfo& each : report.services) add(each.label);
  for (const Measurement& each : report.measurements) add(each.service);
  return labels;
}

std::optional<double> parameter_of(const Measurement& measurement, std::string_view name) {
  const auto found = measurement.parameters.find(std::string(name));
  if (found == measurement.parameters.end()) return std::nullopt;
  return found->second;
}

std::optional<double> median_of(const Measurement* measurement, std::string_view figure) {
  const Figure* found = measurement == nullptr ? nullptr : measurement->figure(figure);
  const auto usable = [](double each) { return std::isfinite(each); };
  if (found == nullptr || std::none_of(found->repeats.begin(), found->repeats.end(), usable)) return std::nullopt;
  return found->median();
}

std::vector<Point> points_of(const Report& report, std::string_view scenario, std::string_view service, Who who,
                             std::string_view parameter, const Parameters& others) {
  std::vector<Point> points;
  for (const Measurement& each : report.measurements) {
    if (each.scenario != scenario || each.service != service || each.who != who) continue;
    Parameters parameters = each.parameters;
    const auto node = parameters.extract(std::string(parameter));
    if (!node.empty() && parameters == others) points.push_back({node.mapped(), &each});
  }
  std::stable_sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.x < b.x; });
  return points;
}

const Measurement* latency_of(const Report& report, std::string_view service, Who who) noexcept {
  return only_one_of(report, scenario::latency, service, who);
}

const Measurement* only_one_of(const Report& report, std::string_view scenario, std::string_view service,
                               Who who) noexcept {
  const auto found = std::find_if(report.measurements.begin(), report.measurements.end(), [&](const Measurement& each) {
    return each.scenario == scenario && each.service == service && each.who == who;
  });
  return found == report.measurements.end() ? nullptr : &*found;
}

const Measurement* most_of(const std::vector<Point>& points) noexcept {
  return points.empty() ? nullptr : points.back().measurement;
}

const Measurement* fewest_of(const std::vector<Point>& points) noexcept {
  return points.empty() ? nullptr : points.front().measurement;
}

std::vector<double> values_of(const Report& report, std::string_view scenario, std::string_view parameter) {
  std::set<double> values;
  for (const Measurement& each : report.measurements) {
    if (each.scenario != scenario || each.who != Who::dlock) continue;
    if (const auto value = parameter_of(each, parameter)) values.insert(*value);
  }
  return {values.begin(), values.end()};
}

}  // namespace dlock::bench
