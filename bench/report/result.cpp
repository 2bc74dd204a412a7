#include "bench/report/result.hpp"

#include <algorithm>
#include <cmath>

#include "bench/measure/statistics.hpp"

namespace dlock::bench {

namespace {

// NaN cannot be ordered.
std::vector<double> usable(std::vector<double> values) {
  std::erase_if(values, [](double each) { return !std::isfinite(each); });
  return values;
}

}  // namespace

const char* to_string(Who who) noexcept {
  return who == Who::dlock ? "dlock" : "by hand";
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

std::optional<double> Measurement::parameter(const std::string& name) const {
  const auto found = parameters.find(name);
  return found == parameters.end() ? std::nullopt : std::optional(found->second);
}

std::optional<double> median_of(const Measurement* measurement, std::string_view figure) {
  const Figure* found = measurement == nullptr ? nullptr : measurement->figure(figure);
  if (found == nullptr || usable(found->repeats).empty()) return std::nullopt;
  return found->median();
}

const Measurement* Report::find(std::string_view scenario, std::string_view service, Who who,
                                const Parameters& parameters) const noexcept {
  const auto found = std::find_if(measurements.begin(), measurements.end(), [&](const Measurement& each) {
    return each.scenario == scenario && each.service == service && each.who == who && each.parameters == parameters;
  });
  return found == measurements.end() ? nullptr : &*found;
}

const ServiceInfo* Report::service(std::string_view label) const noexcept {
  const auto found =
      std::find_if(services.begin(), services.end(), [&](const ServiceInfo& each) { return each.label == label; });
  return found == services.end() ? nullptr : &*found;
}

std::vector<std::string> Report::labels() const {
  std::vector<std::string> labels;
  const auto add = [&](const std::string& label) {
    if (std::find(labels.begin(), labels.end(), label) == labels.end()) labels.push_back(label);
  };
  for (const ServiceInfo& each : services) add(each.label);
  for (const Measurement& each : measurements) add(each.service);
  return labels;
}

}  // namespace dlock::bench
