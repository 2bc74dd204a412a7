// Makes a Measurement, repeat by repeat.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "bench/measure/samples.hpp"
#include "bench/report/figures.hpp"
#include "bench/report/result.hpp"
#include "bench/targets/target.hpp"

namespace dlock::bench {

// What a figure measures, and in which unit.
struct Quantity {
  const char* name;
  const char* unit;
  Better better;
};

struct Percentile {
  Quantity quantity;
  double share;
};

namespace quantity {
inline constexpr Percentile p50{{figure::p50, "us", Better::lower}, 0.5};
inline constexpr Percentile p90{{figure::p90, "us", Better::lower}, 0.9};
inline constexpr Percentile p99{{figure::p99, "us", Better::lower}, 0.99};
inline constexpr Percentile p999{{figure::p999, "us", Better::lower}, 0.999};
inline constexpr Percentile longest{{figure::longest, "us", Better::lower}, 1};
inline constexpr Quantity samples{figure::samples, "", Better::neither};
inline constexpr Quantity throughput{figure::throughput, "1/s", Better::higher};
inline constexpr Quantity hand_offs{figure::hand_offs, "1/s", Better::higher};
inline constexpr Quantity fairness{figure::fairness, "", Better::higher};
inline constexpr Quantity longest_wait{figure::longest_wait, "us", Better::lower};
inline constexpr Quantity operations{figure::operations, "", Better::lower};
inline constexpr Quantity wake_ups{figure::wake_ups, "", Better::lower};
inline constexpr Quantity client_cpu_each{figure::client_cpu, "us", Better::lower};
inline constexpr Quantity context_switches{figure::context_switches, "", Better::lower};
inline constexpr Quantity client_cpu_share{figure::client_cpu, "%", Better::lower};
inline constexpr Quantity memory{figure::memory, "B", Better::lower};
}  // namespace quantity

// What is measured; the target is named elsewhere.
struct Subject {
  const char* scenario;
  Parameters parameters = {};
};

class Collector {
 public:
  Collector(const Target& target, const Subject& subject, Who who);

  // The value of one more repeat.
  void add(const Quantity& quantity, double value);
  void add(const Samples& samples, std::initializer_list<Percentile> percentiles);
  // Samples of one more repeat, for the distribution.
  void keep(const Samples& samples) { all_.add(samples); }

  // The measurement with all its repeats; none if there were no repeats.
  [[nodiscard]] std::optional<Measurement> finish();

 private:
  Measurement measurement_;
  Samples all_;
};

// Of all that have one.
[[nodiscard]] std::vector<Measurement> measurements_of(std::span<Collector> collectors);

}  // namespace dlock::bench
