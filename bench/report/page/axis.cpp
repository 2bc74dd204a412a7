#include "bench/report/page/axis.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "bench/report/units.hpp"

namespace dlock::bench {

namespace {

// Whoever reads a number out of a file may find any.
constexpr double largest = 1e15;
constexpr double smallest = 1e-6;

constexpr int most_labels = 6;

// 1, 2 or 5 times a power of ten, not below the value.
double round_up(double value) {
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double digit : {1.0, 2.0, 5.0}) {
    if (digit * power >= value * (1 - 1e-9)) return digit * power;
  }
  return 10 * power;
}

double round_down(double value) {
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double digit : {5.0, 2.0}) {
    if (digit * power <= value * (1 + 1e-9)) return digit * power;
  }
  return power;
}

std::vector<double> usable(const std::vector<double>& values) {
  std::vector<double> result;
  for (const double each : values) {
    if (std::isfinite(each) && each > 0) result.push_back(std::clamp(each, smallest, largest));
  }
  return result;
}

}  // namespace

Axis::Axis(Kind kind, double from, double to, std::string title) : kind_(kind), title_(std::move(title)) {
  from_ = stretched(from);
  to_ = stretched(to);
}

double Axis::stretched(double value) const noexcept {
  switch (kind_) {
    case Kind::linear:
      break;
    case Kind::logarithmic:
      return value > 0 ? std::log10(value) : -std::numeric_limits<double>::infinity();
    case Kind::shares:
      return -std::log10(1 - std::clamp(value, 0.0, most_share()));
  }
  return value;
}

double Axis::share(double value) const noexcept {
  const double share = (stretched(value) - from_) / (to_ - from_);
  return share > 0 ? std::min(share, 1.0) : 0;  // NaN too
}

void Axis::add_tick(double value, std::string label) {
  ticks_.push_back({share(value), std::move(label)});
}

Axis Axis::from_zero(const std::vector<double>& values, std::string title, std::string_view unit) {
  const std::vector<double> known = usable(values);
  const double most = known.empty() ? 1 : *std::max_element(known.begin(), known.end());
  constexpr int steps = 4;
  const double step = round_up(most / steps);
  const double top = step * std::ceil(most / step * (1 - 1e-9));
  Axis axis(Kind::linear, 0, top, std::move(title));
  for (int i = 0; i <= steps && step * i <= top * (1 + 1e-9); ++i) {
    axis.add_tick(step * i, i == 0 ? "0" : round_text(step * i, unit));
  }
  return axis;
}

Axis Axis::logarithmic(const std::vector<double>& values, std::string title, std::string_view unit) {
  std::vector<double> known = usable(values);
  if (known.empty()) known = {1, 10};
  const auto [lowest, highest] = std::minmax_element(known.begin(), known.end());
  const double from = round_down(*lowest);
  double to = round_up(*highest);
  if (to <= from * (1 + 1e-9)) to = from * 10;
  Axis axis(Kind::logarithmic, from, to, std::move(title));
  const double decades = std::log10(to / from);
  const int first = static_cast<int>(std::floor(std::log10(from) + 1e-9));
  const int last = static_cast<int>(std::ceil(std::log10(to) - 1e-9));
  const int stride = std::max(1, static_cast<int>(std::ceil(decades / most_labels)));
  for (int power = first; power <= last; power += stride) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double value = digit * std::pow(10, power);
      if (value < from * (1 - 1e-9) || value > to * (1 + 1e-9) || (digit > 1 && decades > 2)) continue;
      axis.add_tick(value, round_text(value, unit));
    }
  }
  return axis;
}

Axis Axis::of(std::vector<double> values, std::string title) {
  std::erase_if(values, [](double each) { return std::isnan(each) || each < 0 || each > largest; });
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  if (values.empty()) values = {0, 1};
  double from = values.front();
  double to = values.back();
  const bool is_logarithmic = from > smallest;
  if (from == to) {
    from = is_logarithmic ? from / 2 : 0;
    to = is_logarithmic ? to * 2 : to + 1;
  }
  Axis axis(is_logarithmic ? Kind::logarithmic : Kind::linear, from, to, std::move(title));
  constexpr double room = 0.045;  // that a label takes
  for (const double each : values) {
    const bool free = axis.ticks_.empty() || axis.share(each) - axis.ticks_.back().share >= room;
    if (free) axis.add_tick(each, round_text(each, ""));
  }
  return axis;
}

Axis Axis::of_shares(std::string title) {
  Axis axis(Kind::shares, 0, most_share(), std::move(title));
  for (const auto& [share, label] :
       {std::pair(0.0, "0 %"), std::pair(0.5, "50 %"), std::pair(0.9, "90 %"), std::pair(0.99, "99 %"),
        std::pair(0.999, "99.9 %"), std::pair(0.9999, "99.99 %")}) {
    axis.add_tick(share, label);
  }
  return axis;
}

}  // namespace dlock::bench
