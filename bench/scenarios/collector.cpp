#include "bench/scenarios/collector.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace dlock::bench {

namespace {

// Of a distribution; more would not be seen in a picture.
constexpr std::size_t most_points = 200;

}  // namespace

Collector::Collector(const Target& target, const Subject& subject, Who who)
    : measurement_{.scenario = subject.scenario,
                   .service = target.label(),
                   .who = who,
                   .parameters = subject.parameters,
                   .figures = {},
                   .cdf = {}} {}

void Collector::add(const Quantity& quantity, double value) {
  auto found = std::find_if(measurement_.figures.begin(), measurement_.figures.end(),
                            [&](const Figure& figure) { return figure.name == quantity.name; });
  if (found == measurement_.figures.end()) {
    found = measurement_.figures.insert(found, {quantity.name, quantity.unit, quantity.better, {}});
  }
  found->repeats.push_back(value);
}

void Collector::add(const Samples& samples, std::initializer_list<Percentile> percentiles) {
  for (const Percentile& each : percentiles) add(each.quantity, samples.percentile(each.share));
}

std::optional<Measurement> Collector::finish() {
  if (measurement_.figures.empty()) return std::nullopt;
  measurement_.cdf = all_.cdf(most_points);
  return std::move(measurement_);
}

std::vector<Measurement> measurements_of(std::span<Collector> collectors) {
  std::vector<Measurement> result;
  for (Collector& each : collectors) {
    if (auto measurement = each.finish()) result.push_back(*std::move(measurement));
  }
  return result;
}

}  // namespace dlock::bench
