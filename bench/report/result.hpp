// What a run measured: the data that the table, the HTML page, the JSON file and comparisons are made of.
#pragma once

#include <map>
#include <string>
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

// Who did the work: dlock, or one of the floors, which are blocking programs on the service's C client.
enum class Who {
  dlock,
  same_requests,  // sends what dlock sends: the ratio to it is what dlock itself costs
  by_hand,        // a lock as a user would write it
};

// "dlock", "same requests", "by hand"
[[nodiscard]] const char* to_string(Who who) noexcept;

using Parameters = std::map<std::string, double>;

struct Measurement {
  std::string scenario;  // "latency", "throughput", ...
  std::string service;   // Target::label(): "redis queue"
  Who who = Who::dlock;
  Parameters parameters;  // "callers": 64
  std::vector<Figure> figures;
  std::vector<CdfPoint> cdf;  // of all repeats together; empty where there is no distribution to show

  [[nodiscard]] const Figure* figure(std::string_view name) const noexcept;
};

using Settings = std::vector<std::pair<std::string, std::string>>;

struct ServiceInfo {
  std::string label;     // "redis queue"
  std::string backend;   // "redis"
  std::string strategy;  // "queue"; empty where there is only one
  std::string url;       // as it may be shown, without password
  Settings settings;     // version, durability, and what else the figures depend on
  // For people, in a few words: the locks that the service loses in a crash of its server, and when another server
  // takes over. Empty: it has no server.
  std::string crash = {};
  std::string failover = {};
};

// What could not be measured, and why.
struct Problem {
  std::string service;
  std::string scenario;  // empty: nothing could be
  std::string message;
};

struct Report {
  std::string started;  // "2026-11-22T10:00:00Z"
  double seconds = 0;
  bool quick = false;
  bool complete = true;  // false: interrupted
  std::string command;   // that repeats it
  Settings environment;  // machine, processor, kernel, compiler, version and revision of dlock
  std::vector<ServiceInfo> services;
  std::vector<Measurement> measurements;
  std::vector<Problem> problems;

  // The measurement of that kind, or nullptr.
  [[nodiscard]] const Measurement* find(std::string_view scenario, std::string_view service, Who who,
                                        const Parameters& parameters) const noexcept;
};

// What dlock's measurement is compared with: that of the floor with the same parameters, and for asynchronous calls
// under way that with as many callers. nullptr: not measured.
[[nodiscard]] const Measurement* floor_of(const Report& report, const Measurement& measurement, Who floor);

// dlock's figure divided by the floor's, repeat by repeat, and of these ratios the median. 0 where either is missing.
[[nodiscard]] double ratio_to_floor(const Report& report, const Measurement& measurement, Who floor,
                                    std::string_view figure);

}  // namespace dlock::bench
