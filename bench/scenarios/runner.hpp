// Carries out measurements: repeat by repeat, dlock and the floor alternating.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "bench/measure/crowd.hpp"
#include "bench/plan.hpp"
#include "bench/report/result.hpp"
#include "bench/targets/target.hpp"

namespace dlock::bench {

// One repeat of one side.
struct Round {
  Window window;
  // By the server, per call, if they are counted; for held names: per name and second.
  std::optional<double> operations;
  std::optional<double> wake_ups;
  double memory = 0;                   // B, per held name
  std::chrono::milliseconds lease{0};  // that the service granted
};

// How a figure is computed from a round. nullopt: unknown.
struct Quantity {
  const char* name;
  const char* unit;
  Better better;
  std::optional<double> (*of)(const Round& round);
};

// dlock or the floor.
struct Side {
  Who who;
  std::function<Round(int repeat, const std::stop_token& stop)> round;
};

// A measurement of a target: dlock, and the floor if there is one.
struct Experiment {
  const char* scenario;
  Parameters parameters;
  std::span<const Quantity> figures;      // with one value per repeat
  bool distribution = false;              // of the samples of all repeats together, which are kept
  std::span<const Quantity> of_all = {};  // with one value, of the same
  int repeats = 0;
  std::chrono::nanoseconds expected{};  // how long it will take
  // Called when the experiment begins. The target is behind delaying proxies if the parameters have a round trip.
  std::function<std::vector<Side>(Target& target, const std::stop_token& stop)> sides = {};
};

// The measurement of each side that has one. After a stop, only complete repeats, with a round of each side, are kept.
[[nodiscard]] std::vector<Measurement> measure(Target& target, const Experiment& experiment,
                                               const std::stop_token& stop);

using Rounds = decltype(Side::round);

// counted: the target whose operations the rounds include; nullptr: none.

// Each round has its own crowd, whose work `begin` makes. Operations are counted while no call is in flight, so that
// they certainly belong to the calls. How quickly the machine wakes a sleeping thread depends on what it did just
// before, so each round has its warm-up.
[[nodiscard]] Rounds separate_rounds(const Plan& plan, std::size_t callers, std::function<Crowd::MakeWork()> begin,
                                     Target* counted);

// Rounds of one caller in an open loop: after the warm-up, calls are due at that rate.
[[nodiscard]] Rounds open_loop(const Plan& plan, double rate, Crowd::MakeWork make);

// After the plan's warm-up, a load continues to warm up until so many calls have ended, or this time has passed, so
// that all connections exist and the initial burst is over.
struct WarmUp {
  std::uint64_t calls = 0;
  std::chrono::nanoseconds longest{0};
};
// Starts the load and warms it up. Its rounds are consecutive.
[[nodiscard]] Rounds rounds_of(const Plan& plan, std::shared_ptr<Load> load, WarmUp warm_up, Target* counted,
                               const std::stop_token& stop);

}  // namespace dlock::bench
