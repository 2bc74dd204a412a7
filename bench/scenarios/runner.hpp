// Carries out measurements: repeat by repeat, dlock and the floor in turns.
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
  // By the server, for each call, where they are counted; for names that are held: for each of them and second.
  std::optional<double> operations;
  std::optional<double> wake_ups;
  double memory = 0;                   // B, for each name that is held
  std::chrono::milliseconds lease{0};  // that the service granted
};

// How a figure is made of a round. Nothing: it is not known.
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

// A measurement of a target: dlock, and the floor where there is one.
struct Experiment {
  const char* scenario;
  Parameters parameters;
  std::span<const Quantity> figures;      // with a value a repeat
  bool distribution = false;              // of the samples of all repeats together, which are kept
  std::span<const Quantity> of_all = {};  // with one value, of the same
  int repeats = 0;
  std::chrono::nanoseconds expected{};  // how long it will take
  // Made when it is carried out. The target is far away where the parameters have a round trip.
  std::function<std::vector<Side>(Target& target, const std::stop_token& stop)> sides = {};
};

// The measurement of each side that has one. After a stop only whole repeats, in which each side had its turn, are
// kept.
[[nodiscard]] std::vector<Measurement> measure(Target& target, const Experiment& experiment,
                                               const std::stop_token& stop);

using Rounds = decltype(Side::round);

// A target that is counted is the one whose operations the rounds have; nullptr: none.

// Rounds of a crowd of its own each, which `begin` makes the work for. Operations are counted while none works, so that
// they belong to the calls for certain. How quickly the machine wakes a sleeping thread depends on what it did just
// before: each round has its warm-up.
[[nodiscard]] Rounds separate_rounds(const Plan& plan, std::size_t callers, std::function<Crowd::MakeWork()> begin,
                                     Target* counted);

// Rounds of one caller in an open loop: after the warm-up, calls are due at that rate.
[[nodiscard]] Rounds open_loop(const Plan& plan, double rate, Crowd::MakeWork make);

// After the plan's warm-up a load warms up until so many calls have ended, but no longer than that, so that all
// connections are there and the first rush has passed.
struct WarmUp {
  std::uint64_t calls = 0;
  std::chrono::nanoseconds longest{0};
};
// Starts the load and warms it up. Its rounds follow on each other.
[[nodiscard]] Rounds rounds_of(const Plan& plan, std::shared_ptr<Load> load, WarmUp warm_up, Target* counted,
                               const std::stop_token& stop);

}  // namespace dlock::bench
