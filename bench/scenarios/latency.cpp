#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "bench/measure/crowd.hpp"
#include "bench/measure/pacer.hpp"
#include "bench/scenarios/pairs.hpp"
#include "bench/scenarios/parts.hpp"
#include "bench/scenarios/scenario.hpp"

namespace dlock::bench {

namespace {

// Whose turn it is.
struct Runner {
  Collector collector;
  Crowd::MakeWork make;
};

// A turn of calls of which the first ones do not count: how quickly the machine wakes a sleeping thread depends on what
// it did just before.
std::optional<Window> closed_loop(const Crowd::MakeWork& make, const Plan& plan, const std::stop_token& stop) {
  Crowd crowd(1, make);
  crowd.gather(stop);
  crowd.start();
  (void)crowd.measure(plan.warm_up, stop);
  Window window = crowd.measure(plan.round, stop);
  (void)crowd.finish();
  if (!window.complete) return std::nullopt;
  return window;
}

std::optional<Window> open_loop(const Crowd::MakeWork& make, const Plan& plan, double rate, std::uint64_t seed,
                                const std::stop_token& stop) {
  std::optional<Pacer> pacer;  // outlives the thread that uses it
  Crowd crowd(1, [&](std::size_t worker, const std::stop_token& cancel) -> Crowd::Work {
    return [&pacer, rate, seed, call = make(worker, cancel)](const std::stop_token& end) {
      if (!pacer) pacer.emplace(real_time(), rate, seed);
      if (!pacer->await_next(end)) return std::optional<Clock::duration>();
      (void)call(end);
      return std::optional(pacer->finish());
    };
  });
  crowd.gather(stop);
  crowd.start();
  Window window = crowd.measure(plan.round, stop);
  const auto end = Clock::now();
  window.samples.add(crowd.finish().samples);  // the call that was under way
  if (!window.complete) return std::nullopt;
  if (pacer) {
    for (const Clock::duration waiting : pacer->give_up(end)) window.samples.add(waiting);
  }
  return window;
}

// The turn of one repeat. None: a stop was requested.
std::optional<Window> take_turn(const Crowd::MakeWork& make, const Plan& plan, std::optional<double> rate,
                                std::uint64_t seed, const std::stop_token& stop) {
  if (!rate) return closed_loop(make, plan, stop);
  Plan warm_up = plan;
  warm_up.round = std::chrono::milliseconds(0);
  if (!closed_loop(make, warm_up, stop)) return std::nullopt;
  return open_loop(make, plan, *rate, seed, stop);
}

}  // namespace

std::vector<Measurement> measure_latency(Target& target, const Plan& plan, const Subject& subject,
                                         std::optional<double> rate, const std::stop_token& stop) {
  const Client client = target.connect(1);
  std::vector<Runner> runners;
  runners.push_back({Collector(target, subject, Who::dlock), [&client](std::size_t, const std::stop_token& cancel) {
                       return dlock_pairs(client, lock_name("latency/dlock"), cancel);
                     }});
  if (target.has_floor()) {
    const std::shared_ptr<Floor> floor = target.make_floor(lock_name("latency/floor"));
    runners.push_back({Collector(target, subject, Who::by_hand),
                       [floor](std::size_t, const std::stop_token&) { return floor_pairs(floor); }});
  }
  for (int repeat = 0; repeat < plan.repeats; ++repeat) {
    std::vector<Window> turns;
    for (const Runner& runner : runners) {
      auto turn = take_turn(runner.make, plan, rate, static_cast<std::uint64_t>(repeat), stop);
      if (!turn) break;
      turns.push_back(*std::move(turn));
    }
    if (turns.size() < runners.size()) break;  // only whole repeats are worth keeping
    for (std::size_t i = 0; i < turns.size(); ++i) {
      using namespace quantity;
      Collector& collector = runners[i].collector;
      const Samples& times = turns[i].samples;
      collector.add(times, {p50, p90, p99, p999, longest});
      collector.add(samples, static_cast<double>(times.count()));
      // In an open loop, waiting for the next arrival takes some as well.
      if (!rate) collector.add(quantity::context_switches, turns[i].switches_each());
      collector.keep(times);
    }
  }
  std::vector<Measurement> result;
  for (Runner& runner : runners) {
    if (auto measurement = runner.collector.finish()) result.push_back(*std::move(measurement));
  }
  return result;
}

std::chrono::nanoseconds time_of_latency(const Plan& plan, bool with_floor) {
  return (with_floor ? 2 : 1) * plan.repeats * (plan.warm_up + plan.round);
}

std::vector<Step> latency_steps(Target& target, const Plan& plan) {
  Subject subject{scenario::latency};
  if (plan.rate) subject.parameters[parameter::rate] = *plan.rate;
  return {{.what = plan.rate ? "latency, open loop" : "latency",
           .scenario = scenario::latency,
           .expected = time_of_latency(plan, target.has_floor()),
           .run = [&target, &plan, subject](const std::stop_token& stop) {
             return measure_latency(target, plan, subject, plan.rate, stop);
           }}};
}

}  // namespace dlock::bench
