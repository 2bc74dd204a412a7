// Small reports, for tests that say what is in them.
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "bench/report/figures.hpp"
#include "bench/report/report.hpp"

namespace dlock::bench {

inline std::string file_text(const std::string& path) {
  std::ifstream file(std::string(DLOCK_SOURCE_DIR) + "/" + path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The file with a measurement of each kind, of four services.
inline std::string golden_text() {
  return file_text("tests/unit/bench/report/golden.json");
}

inline Report golden_report() {
  return from_json(golden_text());
}

inline ServiceInfo service(const std::string& backend, const std::string& strategy, Settings settings = {}) {
  return {.label = strategy.empty() ? backend : backend + " " + strategy,
          .backend = backend,
          .strategy = strategy,
          .url = backend + "://",
          .settings = std::move(settings)};
}

inline Figure lower(const std::string& name, std::vector<double> repeats, const std::string& unit = "us") {
  return {.name = name, .unit = unit, .better = Better::lower, .repeats = std::move(repeats)};
}

inline Figure higher(const std::string& name, std::vector<double> repeats, const std::string& unit = "1/s") {
  return {.name = name, .unit = unit, .better = Better::higher, .repeats = std::move(repeats)};
}

inline Measurement measurement(const std::string& scenario, const std::string& service, Parameters parameters,
                               std::vector<Figure> figures, Who who = Who::dlock) {
  return {.scenario = scenario,
          .service = service,
          .who = who,
          .parameters = std::move(parameters),
          .figures = std::move(figures),
          .cdf = {}};
}

inline Measurement latency(const std::string& service, std::vector<double> p50, Who who = Who::dlock) {
  return measurement(scenario::latency, service, {}, {lower(figure::p50, std::move(p50))}, who);
}

inline Measurement throughput(const std::string& service, Parameters parameters, std::vector<double> pairs,
                              Who who = Who::dlock) {
  return measurement(scenario::throughput, service, std::move(parameters),
                     {higher(figure::throughput, std::move(pairs))}, who);
}

inline Measurement throughput(const std::string& service, double callers, std::vector<double> pairs,
                              Who who = Who::dlock) {
  return throughput(service, Parameters{{parameter::callers, callers}}, std::move(pairs), who);
}

inline Measurement hand_off(const std::string& service, double waiters, double p50) {
  return measurement(scenario::contention, service, {{parameter::waiters, waiters}}, {lower(figure::p50, {p50})});
}

// Among eight readers.
inline Measurement writers_wait(const std::string& service, std::vector<double> p50, std::vector<double> p99) {
  return measurement(scenario::contention, service, {{parameter::readers, 8}},
                     {lower(figure::p50, std::move(p50)), lower(figure::p99, std::move(p99))});
}

inline Measurement under_way(const std::string& service, double count, std::vector<double> pairs,
                             std::vector<double> client_cpu) {
  return measurement(scenario::throughput, service, {{parameter::outstanding, count}},
                     {higher(figure::throughput, std::move(pairs)), lower(figure::client_cpu, std::move(client_cpu))});
}

}  // namespace dlock::bench
