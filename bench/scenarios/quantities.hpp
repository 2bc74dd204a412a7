// How each figure is made of a round.
#pragma once

#include <chrono>
#include <optional>

#include "bench/measure/statistics.hpp"
#include "bench/report/figures.hpp"
#include "bench/scenarios/runner.hpp"

namespace dlock::bench::quantity {

using Value = std::optional<double>;
using Microseconds = std::chrono::duration<double, std::micro>;

template <int per_mille>
Value percentile(const Round& round) {
  return round.window.samples.percentile(per_mille / 1000.0);
}

inline Value for_each_call(const Round& round, double value) {
  const auto calls = static_cast<double>(round.window.calls());
  return calls > 0 ? Value(value / calls) : std::nullopt;
}

inline constexpr Quantity p50{figure::p50, "us", Better::lower, percentile<500>};
inline constexpr Quantity p90{figure::p90, "us", Better::lower, percentile<900>};
inline constexpr Quantity p99{figure::p99, "us", Better::lower, percentile<990>};
inline constexpr Quantity p999{figure::p999, "us", Better::lower, percentile<999>};
inline constexpr Quantity longest{figure::longest, "us", Better::lower, percentile<1000>};
inline constexpr Quantity samples{figure::samples, "", Better::neither, [](const Round& round) -> Value {
                                    return static_cast<double>(round.window.samples.count());
                                  }};
inline constexpr Quantity throughput{figure::throughput, "1/s", Better::higher,
                                     [](const Round& round) -> Value { return round.window.per_second(); }};
inline constexpr Quantity hand_offs{figure::hand_offs, "1/s", Better::higher, throughput.of};
inline constexpr Quantity fairness{figure::fairness, "", Better::higher, [](const Round& round) -> Value {
                                     return fairness_of_turns(round.window.calls_of_each);
                                   }};
inline constexpr Quantity longest_wait{figure::longest_wait, "us", Better::lower, [](const Round& round) -> Value {
                                         return Microseconds(round.window.longest_wait).count();
                                       }};
inline constexpr Quantity operations{figure::operations, "", Better::lower,
                                     [](const Round& round) { return round.operations; }};
inline constexpr Quantity wake_ups{figure::wake_ups, "", Better::lower,
                                   [](const Round& round) { return round.wake_ups; }};
inline constexpr Quantity client_cpu_each{
    figure::client_cpu, "us", Better::lower,
    [](const Round& round) { return for_each_call(round, Microseconds(round.window.processor_time).count()); }};
inline constexpr Quantity client_cpu_share{figure::client_cpu, "%", Better::lower, [](const Round& round) -> Value {
                                             return 100 * Microseconds(round.window.processor_time).count() /
                                                    Microseconds(round.window.length).count();
                                           }};
inline constexpr Quantity context_switches{
    figure::context_switches, "", Better::lower,
    [](const Round& round) { return for_each_call(round, static_cast<double>(round.window.context_switches)); }};
inline constexpr Quantity memory{figure::memory, "B", Better::lower,
                                 [](const Round& round) -> Value { return round.memory; }};
inline constexpr Quantity lease{figure::lease, "us", Better::neither,
                                [](const Round& round) -> Value { return Microseconds(round.lease).count(); }};

}  // namespace dlock::bench::quantity
