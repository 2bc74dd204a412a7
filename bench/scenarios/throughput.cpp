#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/measure/crowd.hpp"
#include "bench/scenarios/async_load.hpp"
#include "bench/scenarios/pairs.hpp"
#include "bench/scenarios/parts.hpp"
#include "bench/scenarios/scenario.hpp"

namespace dlock::bench {

namespace {

constexpr std::chrono::milliseconds usual_connect{1};  // of a floor

struct Round {
  Window window;
  std::optional<double> operations;  // for each pair
};

std::optional<double> difference(const std::optional<Operations>& before, const std::optional<Operations>& after,
                                 double pairs) {
  if (!before || !after || pairs <= 0) return std::nullopt;
  return (after->carried_out - before->carried_out) / pairs;
}

void add(Collector& collector, const Round& round) {
  const Window& window = round.window;
  collector.add(quantity::throughput, window.per_second());
  collector.add(window.samples, {quantity::p50, quantity::p99});
  if (window.calls() > 0) {
    const std::chrono::duration<double, std::micro> processor_time = window.processor_time;
    collector.add(quantity::client_cpu_each, processor_time.count() / static_cast<double>(window.calls()));
    collector.add(quantity::context_switches, window.switches_each());
  }
  if (round.operations) collector.add(quantity::operations, *round.operations);
}

// The service's operations are counted while none works, so that they belong to the pairs for certain.
Round run_round(Target& target, std::size_t callers, const Plan& plan, const Crowd::MakeWork& make,
                const std::stop_token& stop) {
  Crowd crowd(callers, make);
  crowd.gather(stop);
  const auto before = target.operations();
  crowd.start();
  (void)crowd.measure(plan.warm_up, stop);
  Round round{.window = crowd.measure(plan.round, stop), .operations = {}};
  (void)crowd.finish();
  if (round.window.complete) {
    round.operations = difference(before, target.operations(), static_cast<double>(crowd.calls()));
  }
  return round;
}

// Client and floors are never connected at the same time: a service may not have connections for all of them.
Round dlock_round(Target& target, std::size_t callers, const Plan& plan, const std::stop_token& stop) {
  const Client client = target.connect(callers);
  return run_round(
      target, callers, plan,
      [&client](std::size_t worker, const std::stop_token& cancel) {
        return dlock_pairs(client, lock_name("throughput/dlock/" + std::to_string(worker)), cancel);
      },
      stop);
}

Round floor_round(Target& target, std::size_t callers, const Plan& plan, const std::stop_token& stop) {
  Round round = run_round(
      target, callers, plan,
      [&](std::size_t worker, const std::stop_token&) {
        return floor_pairs(target.make_floor(lock_name("throughput/floor/" + std::to_string(worker))));
      },
      stop);
  round.operations.reset();  // they are known, and Redis does not tell a client's SET from a script's
  return round;
}

// As far as there are connections for all callers.
bool has_floor_for(const Target& target, std::size_t callers) {
  return target.has_floor() && (target.most_floors() == 0 || callers <= target.most_floors());
}

std::vector<Measurement> measure_callers(Target& target, std::size_t callers, const Plan& plan,
                                         const std::stop_token& stop) {
  const Subject subject{scenario::throughput, {{parameter::callers, static_cast<double>(callers)}}};
  std::vector<Who> turns = {Who::dlock};
  if (has_floor_for(target, callers)) turns.push_back(Who::by_hand);
  std::vector<Collector> collectors;
  for (const Who who : turns) collectors.emplace_back(target, subject, who);
  for (int repeat = 0; repeat < plan.repeats; ++repeat) {
    std::vector<Round> rounds;
    for (const Who who : turns) {
      rounds.push_back(who == Who::dlock ? dlock_round(target, callers, plan, stop)
                                         : floor_round(target, callers, plan, stop));
      if (!rounds.back().window.complete) return measurements_of(collectors);  // only whole repeats are worth keeping
    }
    for (std::size_t i = 0; i < rounds.size(); ++i) add(collectors[i], rounds[i]);
  }
  return measurements_of(collectors);
}

std::vector<Measurement> measure_outstanding(Target& target, std::size_t count, const Plan& plan,
                                             const std::stop_token& stop) {
  const Subject subject{scenario::throughput, {{parameter::outstanding, static_cast<double>(count)}}};
  Collector collector(target, subject, Who::dlock);
  AsyncLoad load(target, count);
  load.start();
  load.warm_up(plan.warm_up, stop);
  for (int repeat = 0; repeat < plan.repeats && !stop.stop_requested(); ++repeat) {
    const auto before = target.operations();
    const std::uint64_t pairs_before = load.pairs();
    Round round{.window = load.measure(plan.round, stop), .operations = {}};
    if (!round.window.complete) break;
    const auto after = target.operations();
    round.operations = difference(before, after, static_cast<double>(load.pairs() - pairs_before));
    add(collector, round);
  }
  return measurements_of({&collector, 1});
}

// Without those that would be measured twice because the service does not take more.
std::vector<std::size_t> outstanding_of(const Target& target, const Plan& plan) {
  std::vector<std::size_t> counts;
  for (const std::size_t each : plan.outstanding) {
    const std::size_t count = most_possible(target, each);
    if (std::find(counts.begin(), counts.end(), count) == counts.end()) counts.push_back(count);
  }
  return counts;
}

}  // namespace

std::vector<Step> throughput_steps(Target& target, const Plan& plan) {
  std::vector<Step> steps;
  for (const std::size_t callers : plan.callers) {
    if (!possible(target, callers)) continue;
    const bool with_floor = has_floor_for(target, callers);
    steps.push_back({.what = "throughput, " + std::to_string(callers) + (callers == 1 ? " caller" : " callers"),
                     .scenario = scenario::throughput,
                     .expected = time_of_latency(plan, with_floor) +
                                 plan.repeats * (with_floor ? static_cast<int>(callers) : 0) * usual_connect,
                     .run = [&target, &plan, callers](const std::stop_token& stop) {
                       return measure_callers(target, callers, plan, stop);
                     }});
  }
  for (const std::size_t outstanding : outstanding_of(target, plan)) {
    steps.push_back({.what = "throughput, " + std::to_string(outstanding) + " acquires under way",
                     .scenario = scenario::throughput,
                     .expected = plan.warm_up + plan.repeats * plan.round,
                     .run = [&target, &plan, outstanding](const std::stop_token& stop) {
                       return measure_outstanding(target, outstanding, plan, stop);
                     }});
  }
  return steps;
}

}  // namespace dlock::bench
