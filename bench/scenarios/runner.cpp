#include "bench/scenarios/runner.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include <dlock/error.hpp>

#include "bench/measure/pacer.hpp"
#include "bench/report/figures.hpp"

namespace dlock::bench {

namespace {

// A chart of a distribution would not show more.
constexpr std::size_t most_points = 200;
constexpr std::chrono::milliseconds further_warm_up{1};

void add(Measurement& measurement, std::span<const Quantity> quantities, const Round& round) {
  for (const Quantity& each : quantities) {
    const std::optional<double> value = each.of(round);
    if (!value) continue;
    auto& figures = measurement.figures;
    auto found =
        std::find_if(figures.begin(), figures.end(), [&](const Figure& figure) { return figure.name == each.name; });
    if (found == figures.end()) found = figures.insert(found, {each.name, each.unit, each.better, {}});
    found->repeats.push_back(*value);
  }
}

// A round of each side; fewer: a stop was requested.
std::vector<Round> rounds_of_all(const std::vector<Side>& sides, int repeat, const std::stop_token& stop) {
  std::vector<Round> rounds;
  try {
    for (const Side& side : sides) {
      Round round = side.round(repeat, stop);
      if (!round.window.complete) break;
      rounds.push_back(std::move(round));
    }
  } catch (const Error& error) {
    if (error.code() != errc::cancelled || !stop.stop_requested()) throw;
  }
  return rounds;
}

// The service's count at one time, and how many calls had ended by then.
struct Mark {
  std::optional<Operations> operations;
  std::uint64_t calls;
};

// The calls are counted after the query, so that its delay is the same for both marks. Ended calls are counted: a
// window has at least one of them, while a turn may have begun just before it.
Mark mark(Target* counted, const Load& load) {
  auto operations = counted != nullptr ? counted->operations() : std::nullopt;
  return {operations, load.calls()};
}

void add_operations(Round& round, const Mark& before, const Mark& after) {
  if (!before.operations || !after.operations || after.calls <= before.calls) return;
  const auto calls = static_cast<double>(after.calls - before.calls);
  round.operations = (after.operations->carried_out - before.operations->carried_out) / calls;
  if (before.operations->wake_ups && after.operations->wake_ups) {
    round.wake_ups = (*after.operations->wake_ups - *before.operations->wake_ups) / calls;
  }
}

}  // namespace

std::vector<Measurement> measure(Target& target, const Experiment& experiment, const std::stop_token& stop) {
  std::unique_ptr<Target> far;  // outlives the sides
  if (const auto trip = experiment.parameters.find(parameter::round_trip_ms); trip != experiment.parameters.end()) {
    far = target.at_distance(std::chrono::milliseconds(std::llround(trip->second)));
    if (!far) throw std::runtime_error("the service is no longer reached over TCP");
  }
  const std::vector<Side> sides = experiment.sides(far ? *far : target, stop);
  std::vector<Measurement> result(sides.size());
  std::vector<Round> all(sides.size());
  for (int repeat = 0; repeat < experiment.repeats && !stop.stop_requested(); ++repeat) {
    const std::vector<Round> rounds = rounds_of_all(sides, repeat, stop);
    if (rounds.size() < sides.size()) break;
    for (std::size_t i = 0; i < sides.size(); ++i) {
      add(result[i], experiment.figures, rounds[i]);
      if (experiment.distribution) all[i].window.samples.add(rounds[i].window.samples);
    }
  }
  if (result.front().figures.empty()) return {};  // no repeat was complete
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i].scenario = experiment.scenario;
    result[i].service = target.label();
    result[i].who = sides[i].who;
    result[i].parameters = experiment.parameters;
    add(result[i], experiment.of_all, all[i]);
    if (experiment.distribution) result[i].cdf = all[i].window.samples.cdf(most_points);
  }
  return result;
}

Rounds separate_rounds(const Plan& plan, std::size_t callers, std::function<Crowd::MakeWork()> begin, Target* counted) {
  return [&plan, callers, begin = std::move(begin), counted](int /*repeat*/, const std::stop_token& stop) {
    Crowd crowd(callers, begin());
    crowd.gather(stop);
    const Mark before = mark(counted, crowd);
    crowd.start();
    (void)crowd.measure(plan.warm_up, stop);
    Round round;
    round.window = crowd.measure(plan.round, stop);
    (void)crowd.finish();
    if (round.window.complete) add_operations(round, before, mark(counted, crowd));
    return round;
  };
}

Rounds open_loop(const Plan& plan, double rate, Crowd::MakeWork make) {
  Plan warm_up = plan;
  warm_up.round = std::chrono::milliseconds(0);
  return [&plan, warm_up, rate, make = std::move(make)](int repeat, const std::stop_token& stop) {
    Round round = separate_rounds(
        warm_up, 1, [&] { return make; }, nullptr)(repeat, stop);
    if (!round.window.complete) return round;
    std::optional<Pacer> pacer;  // outlives the thread that uses it
    Crowd crowd(1, [&](std::size_t worker, const std::stop_token& cancel) -> Crowd::Work {
      return [&pacer, rate, repeat, call = make(worker, cancel)](const std::stop_token& end) {
        if (!pacer) pacer.emplace(real_time(), rate, static_cast<std::uint64_t>(repeat));
        if (!pacer->await_next(end)) return std::optional<Clock::duration>();
        (void)call(end);
        return std::optional(pacer->finish());
      };
    });
    crowd.gather(stop);
    crowd.start();
    round.window = crowd.measure(plan.round, stop);
    const auto end = Clock::now();
    round.window.samples.add(crowd.finish().samples);  // the call in progress
    if (round.window.complete && pacer) {
      for (const Clock::duration waiting : pacer->give_up(end)) round.window.samples.add(waiting);
    }
    return round;
  };
}

Rounds rounds_of(const Plan& plan, std::shared_ptr<Load> load, WarmUp warm_up, Target* counted,
                 const std::stop_token& stop) {
  load->gather(stop);
  load->start();
  const auto end = Clock::now() + warm_up.longest;
  (void)load->measure(plan.warm_up, stop);
  while (!stop.stop_requested() && load->calls() < warm_up.calls && Clock::now() < end) {
    (void)load->measure(further_warm_up, stop);
  }
  return [&plan, load, counted, before = mark(counted, *load)](int /*repeat*/, const std::stop_token& cancel) mutable {
    Round round;
    round.window = load->measure(plan.round, cancel);
    if (!round.window.complete) return round;
    const Mark after = mark(counted, *load);
    add_operations(round, before, after);
    before = after;
    return round;
  };
}

}  // namespace dlock::bench
