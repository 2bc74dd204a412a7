#include "bench/report/units.hpp"

#include <array>
#include <cmath>
#include <span>

#include <fmt/core.h>

#include "bench/report/figures.hpp"

namespace dlock::bench {

namespace {

struct Unit {
  double size;
  const char* name;
};

constexpr std::array times = {Unit{1, "µs"}, Unit{1e3, "ms"}, Unit{1e6, "s"}};
constexpr std::array rates = {Unit{1, "/s"}, Unit{1e3, "k/s"}, Unit{1e6, "M/s"}};
constexpr std::array sizes = {Unit{1, "B"}, Unit{1e3, "kB"}, Unit{1e6, "MB"}};

std::string number_text(double value) {
  const double size = std::abs(value);
  if (value == 0) return "0";
  if (!std::isfinite(value)) return not_measured;
  if (size >= 99.95) return fmt::format("{:.0f}", value);
  if (size >= 9.995) return fmt::format("{:.1f}", value);
  if (size >= 0.9995) return fmt::format("{:.2f}", value);
  if (size >= 0.0005) return fmt::format("{:.3f}", value);
  return fmt::format("{:.0e}", value);
}

using NumberText = std::string (*)(double value);

// Rounds first: 999.7 us are 1.00 ms.
std::string scaled(double value, std::span<const Unit> units, NumberText text) {
  std::size_t best = 0;
  while (best + 1 < units.size() && std::abs(value) / units[best + 1].size >= 0.9995) ++best;
  return text(value / units[best].size) + " " + units[best].name;
}

std::string with_unit(double value, std::string_view unit, NumberText text) {
  if (!std::isfinite(value)) return not_measured;
  if (unit == "us") return scaled(value, times, text);
  if (unit == "1/s") return scaled(value, rates, text);
  if (unit == "B") return scaled(value, sizes, text);
  return unit.empty() ? text(value) : text(value) + " " + std::string(unit);
}

std::string parameter_text(std::string_view name, double value) {
  if (name == parameter::callers) return count_text(value, "caller");
  if (name == parameter::waiters) return count_text(value, "waiter");
  if (name == parameter::names) return count_text(value, "name");
  if (name == parameter::held) return count_text(value, "name") + " held";
  if (name == parameter::readers) return "a writer among " + count_text(value, "reader");
  if (name == parameter::permits) return count_text(value, "permit");
  if (name == parameter::reads) return round_text(value, "") + " % reads";
  if (name == parameter::outstanding) return count_text(value, "") + " under way";
  if (name == parameter::round_trip_ms) return round_text(value, "") + " ms round trip";
  if (name == parameter::rate) return round_text(value, "") + " arrivals/s";
  return std::string(name) + " " + round_text(value, "");
}

}  // namespace

std::string quantity_text(double value, std::string_view unit) {
  return with_unit(value, unit, number_text);
}

std::string round_text(double value, std::string_view unit) {
  return with_unit(value, unit, [](double each) { return fmt::format("{:.6g}", each); });
}

std::string plain_units(std::string text) {
  constexpr std::string_view micro = "µs";
  for (auto at = text.find(micro); at != std::string::npos; at = text.find(micro, at))
    text.replace(at, micro.size(), "us");
  return text;
}

std::string count_text(double count, std::string_view noun) {
  std::string digits = fmt::format("{:.0f}", count);
  for (std::size_t at = digits.size(); digits.size() > 4 && at > 3;) {
    at -= 3;
    digits.insert(at, " ");
  }
  if (noun.empty()) return digits;
  return digits + " " + std::string(noun) + (count == 1 ? "" : "s");
}

std::string duration_text(double seconds) {
  const auto whole = std::llround(seconds);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string name_of(std::string scenario, const Parameters& parameters) {
  for (const auto& [name, value] : parameters) scenario += ", " + parameter_text(name, value);
  return scenario;
}

std::string name_of(const Measurement& measurement) {
  const std::string name = name_of(measurement.scenario, measurement.parameters);
  return measurement.who == Who::dlock ? name : name + ", " + to_string(measurement.who);
}

std::string printable(std::string_view text) {
  std::string result(text);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto byte = static_cast<unsigned char>(result[i]);
    if (byte < 0x20U || byte == 0x7FU) result[i] = ' ';
    // U+0080 to U+009F in UTF-8: some terminals obey these as well.
    const bool second_set = byte == 0xC2U && i + 1 < result.size() && static_cast<unsigned char>(result[i + 1]) < 0xA0U;
    if (second_set) result.replace(i, 2, " ");
  }
  return result;
}

}  // namespace dlock::bench
