#include "bench/report/names.hpp"

#include "bench/report/figures.hpp"
#include "bench/report/units.hpp"

namespace dlock::bench {

namespace {

std::string text_of(std::string_view name, double value) {
  if (name == parameter::callers) return count_text(value, "caller");
  if (name == parameter::waiters) return count_text(value, "waiter");
  if (name == parameter::leases) return count_text(value, "lease");
  if (name == parameter::names) return count_text(value, "name");
  if (name == parameter::readers) return "a writer among " + count_text(value, "reader");
  if (name == parameter::permits) return count_text(value, "permit");
  if (name == parameter::reads) return round_text(value, "") + " % reads";
  if (name == parameter::outstanding) return count_text(value, "") + " under way";
  if (name == parameter::round_trip_ms) return round_text(value, "") + " ms round trip";
  if (name == parameter::hold_us) return "held for " + round_text(value, "us");
  if (name == parameter::rate) return round_text(value, "") + " arrivals/s";
  if (name == parameter::lease_ms) return value == 0 ? "no lease" : "lease of " + round_text(value * 1000, "us");
  return std::string(name) + " " + round_text(value, "");
}

}  // namespace

std::string name_of(const Measurement& measurement) {
  std::string name = measurement.scenario;
  for (const auto& [key, value] : measurement.parameters) name += ", " + text_of(key, value);
  if (measurement.who != Who::dlock) name += std::string(", ") + to_string(measurement.who);
  return name;
}

}  // namespace dlock::bench
