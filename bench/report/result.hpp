// The results of a run: the data of the table, the HTML page, the JSON file and comparisons.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/measure/samples.hpp"

namespace dlock::bench {

enum class Better { lower, higher, neither };

// One quantity, measured once in each repeat.
struct Figure {
  std::string name;  // see figures.hpp
  std::string unit;  // "us", "1/s", "B", ...; empty for a bare number
  Better better = Better::neither;
  std::vector<double> repeats;

  [[nodiscard]] double median() const;
  [[nodiscard]] double lowest() const;
  [[nodiscard]] double highest() const;
};

enum class Who {
  dlock,
  by_hand,  // a lock as a user would write it: a blocking program with the service's C client
};

// "dlock", "by hand"
[[nodiscard]] const char* to_string(Who who) noexcept;

using Parameters = std::map<std::string, double>;

struct Measurement {
  std::string scenario;  // "latency", "throughput", ...
  std::string service;   // Target::label(): "redis queue"
  Who who = Who::dlock;
  Parameters parameters;  // such as "callers": 64
  std::vector<Figure> figures;
  std::vector<CdfPoint> cdf;  // of all repeats together; empty: no distribution to show

  [[nodiscard]] const Figure* figure(std::string_view name) const noexcept;
  [[nodiscard]] std::optional<double> parameter(const std::string& name) const;
};

// The median; nullopt: no such measurement, figure or finite number.
[[nodiscard]] std::optional<double> median_of(const Measurement* measurement, std::string_view figure);

using Settings = std::vector<std::pair<std::string, std::string>>;

struct ServiceInfo {
  std::string label;     // "redis queue"
  std::string backend;   // "redis"
  std::string strategy;  // "queue"; empty where there is only one
  std::string url;       // for display, without password
  Settings settings;     // version, durability, and other conditions of the figures
  // For people, in a few words: the locks that the service loses when its server crashes, and when another server takes
  // over. Empty: it has no server.
  std::string crash = {};
  std::string failover = {};
};

// What could not be measured, and why.
struct Problem {
  std::string service;
  std::string scenario;  // empty: no scenario could be measured
  std::string message;
};

struct Report {
  std::string started;  // "2026-11-22T10:00:00Z"
  double seconds = 0;
  bool quick = false;
  bool complete = true;  // false: interrupted
  std::string command;   // to repeat it
  Settings environment;  // machine, processor, kernel, compiler, version and revision of dlock
  std::vector<ServiceInfo> services;
  std::vector<Measurement> measurements;
  std::vector<Problem> problems;

  // The measurement of that kind, or nullptr.
  [[nodiscard]] const Measurement* find(std::string_view scenario, std::string_view service, Who who,
                                        const Parameters& parameters) const noexcept;
  [[nodiscard]] const ServiceInfo* service(std::string_view label) const noexcept;
  // Of all known or measured services, in the order of the report.
  [[nodiscard]] std::vector<std::string> labels() const;
};

}  // namespace dlock::bench
