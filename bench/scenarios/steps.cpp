#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <utility>

#include "bench/report/figures.hpp"
#include "bench/report/units.hpp"
#include "bench/scenarios/async_load.hpp"
#include "bench/scenarios/holding.hpp"
#include "bench/scenarios/quantities.hpp"
#include "bench/scenarios/recovery.hpp"
#include "bench/scenarios/runner.hpp"
#include "bench/scenarios/scenario.hpp"
#include "bench/scenarios/work.hpp"
#include "bench/session.hpp"

namespace dlock::bench {

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

namespace q = quantity;

constexpr std::array of_open_loop{q::p50, q::p90, q::p99, q::p999, q::longest, q::samples};
// In an open loop, waiting for the next arrival takes some context switches as well.
constexpr std::array of_latency{q::p50, q::p90, q::p99, q::p999, q::longest, q::samples, q::context_switches};
constexpr std::array of_callers{q::throughput, q::p50, q::p99, q::client_cpu_each, q::context_switches, q::operations};
constexpr std::array of_shared{q::throughput};
constexpr std::array of_held{q::client_cpu_share, q::operations, q::memory, q::lease};
constexpr std::array of_contention{q::hand_offs, q::p50,          q::p90,        q::p99,     q::longest,
                                   q::fairness,  q::longest_wait, q::operations, q::wake_ups};
constexpr std::array of_names{q::throughput, q::p50, q::p99, q::longest, q::fairness};
constexpr std::array of_waits{q::p50, q::p99};
constexpr std::array of_kills{q::p50, q::lease};
constexpr std::array of_all_kills{q::longest};

constexpr int percents_of_reads[] = {95, 50};
constexpr std::size_t sharers[] = {8, 64};
constexpr std::size_t permit_callers = 64;
constexpr std::size_t permit_count = 4;
constexpr std::size_t readers = 8;  // that one writer waits for
constexpr std::size_t callers_of_names = 64;
constexpr std::size_t name_count = 1000;
// Enough that the next one is already waiting, however distant the service is.
constexpr std::size_t distant_waiters = 8;
// Callers that share a lock are spread over several clients, as over processes.
constexpr std::size_t most_clients = 8;

Crowd::MakeWork floors_of(Target& target) {
  return [&target](std::size_t caller, const std::stop_token&) {
    return floor_pairs(target.make_floor(lock_name("floor", caller)));
  };
}

class StepTable {
 public:
  StepTable(Target& target, const Plan& plan) : target_(target), plan_(plan), able_(target.connect(1).capabilities()) {}

  void add_latency() {
    add_latency(plan_.rate ? Parameters{{parameter::rate, *plan_.rate}} : Parameters(), plan_.rate);
    for (const int each : round_trips()) add_latency({{parameter::round_trip_ms, each}}, std::nullopt);
  }
  void add_throughput() {
    for (const std::size_t callers : plan_.callers) add_callers(callers);
    for (const std::size_t count : most_possible(plan_.outstanding)) {
      constexpr seconds longest_warm_up{5};
      add_load(
          {scenario::throughput, {{parameter::outstanding, number(count)}}, of_callers}, count,
          [count](Target& target) { return std::make_shared<AsyncLoad>(target, count); }, {count, longest_warm_up},
          true);
    }
    for (const int percent : percents_of_reads) {
      for (const std::size_t callers : sharers) {
        const Parameters parameters{{parameter::callers, number(callers)}, {parameter::reads, percent}};
        add_sharers({scenario::throughput, parameters, of_shared}, LockKind::read_write, callers,
                    readers_and_writers(percent));
      }
    }
    const Parameters parameters{{parameter::callers, permit_callers}, {parameter::permits, permit_count}};
    add_sharers({scenario::throughput, parameters, of_shared}, LockKind::semaphore, permit_callers,
                permits(permit_count));
    for (const std::size_t count : most_possible({plan_.held})) add_held(count);
  }
  void add_contention() {
    for (const std::size_t waiters : plan_.waiters) add_waiters({}, waiters);
    for (const int each : round_trips()) add_waiters({{parameter::round_trip_ms, each}}, distant_waiters);
    for (const std::size_t callers : most_possible({callers_of_names})) {
      const Parameters parameters{{parameter::callers, number(callers)}, {parameter::names, name_count}};
      add_load({scenario::contention, parameters, of_names, true}, callers, [callers](Target& target) {
        return std::make_shared<Crowd>(callers, spread(connect_clients(target, callers, 1), many_names(name_count)));
      });
    }
    add_sharers({scenario::contention, {{parameter::readers, readers}}, of_waits}, LockKind::read_write, readers + 1,
                writer_among(readers));
  }
  void add_recovery() {
    if (plan_.dlock_program.empty() || able_.scope == Scope::process) return;
    Experiment experiment{scenario::recovery, {}, of_kills, true, of_all_kills, plan_.kills};
    experiment.expected = plan_.kills * time_of_recovery(able_);
    experiment.sides = [&plan = plan_](Target& target, const std::stop_token& stop) {
      return std::vector<Side>{{Who::dlock, recovery(target, plan, stop)}};
    };
    if (plan_.kills > 0) add(std::move(experiment));
  }
  std::vector<Step> finish() { return std::move(steps_); }

 private:
  static double number(std::size_t count) { return static_cast<double>(count); }
  // Whether one client can try so many locks.
  [[nodiscard]] bool possible(std::size_t locks) const {
    return target_.most_locks() == 0 || locks <= target_.most_locks();
  }
  // The counts that are possible, each once.
  [[nodiscard]] std::set<std::size_t> most_possible(const std::vector<std::size_t>& counts) const {
    std::set<std::size_t> result;
    for (const std::size_t each : counts) result.insert(possible(each) ? each : target_.most_locks());
    result.erase(0);
    return result;
  }
  [[nodiscard]] std::vector<int> round_trips() const {
    const bool over_tcp = target_.at_distance(milliseconds(1)) != nullptr;
    return over_tcp ? plan_.round_trips_ms : std::vector<int>();
  }

  void add(Experiment experiment) {
    if (experiment.repeats == 0) experiment.repeats = plan_.repeats;
    Measurement named;
    named.scenario = experiment.scenario;
    named.parameters = experiment.parameters;
    const nanoseconds expected = experiment.expected;
    steps_.push_back({name_of(named), expected, [&target = target_, experiment](const std::stop_token& stop) {
                        return measure(target, experiment, stop);
                      }});
  }
  // Each side has its warm-up in each repeat.
  void add_turns(Experiment experiment, bool floor) {
    experiment.expected = (floor ? 2 : 1) * plan_.repeats * (plan_.warm_up + plan_.round);
    add(std::move(experiment));
  }
  // One load for all repeats, by dlock alone, with so many locks.
  void add_load(Experiment experiment, std::size_t locks, std::function<std::shared_ptr<Load>(Target& target)> make,
                WarmUp warm_up = {}, bool counted = false) {
    if (!possible(locks)) return;
    experiment.expected = plan_.warm_up + plan_.repeats * plan_.round;
    experiment.sides = [&plan = plan_, make = std::move(make), warm_up, counted](Target& target,
                                                                                 const std::stop_token& stop) {
      return std::vector<Side>{{Who::dlock, rounds_of(plan, make(target), warm_up, counted ? &target : nullptr, stop)}};
    };
    add(std::move(experiment));
  }

  // Client and floor stay connected.
  void add_latency(Parameters parameters, std::optional<double> rate) {
    const bool floor = target_.has_floor();
    Experiment experiment{scenario::latency, std::move(parameters), of_latency, true};
    if (rate) experiment.figures = of_open_loop;
    experiment.sides = [&plan = plan_, rate, floor](Target& target, const std::stop_token&) {
      const auto side = [&](Who who, const Crowd::MakeWork& make) {
        const auto begin = [make] { return make; };
        return Side{who, rate ? open_loop(plan, *rate, make) : separate_rounds(plan, 1, begin, nullptr)};
      };
      std::vector<Side> sides = {side(Who::dlock, spread(connect_clients(target, 1, 1), own_lock))};
      if (!floor) return sides;
      const std::shared_ptr<Floor> connected = target.make_floor(lock_name("floor"));
      sides.push_back(
          side(Who::by_hand, [connected](std::size_t, const std::stop_token&) { return floor_pairs(connected); }));
      return sides;
    };
    add_turns(std::move(experiment), floor);
  }
  // Client and floors are never connected at the same time: a service may not have enough connections. A floor's
  // operations are known, and Redis does not distinguish a client's SET from a script's.
  void add_callers(std::size_t callers) {
    if (!possible(callers)) return;
    const bool floor = target_.has_floor() && (target_.most_floors() == 0 || callers <= target_.most_floors());
    Experiment experiment{scenario::throughput, {{parameter::callers, number(callers)}}, of_callers};
    experiment.sides = [&plan = plan_, callers, floor](Target& target, const std::stop_token&) {
      const auto connect = [&target, callers] { return spread(connect_clients(target, callers, 1), own_lock); };
      const auto connect_floors = [&target] { return floors_of(target); };
      std::vector<Side> sides = {{Who::dlock, separate_rounds(plan, callers, connect, &target)}};
      if (floor) sides.push_back({Who::by_hand, separate_rounds(plan, callers, connect_floors, nullptr)});
      return sides;
    };
    add_turns(std::move(experiment), floor);
  }
  void add_sharers(Experiment experiment, LockKind kind, std::size_t callers, const WorkOnClient& work) {
    if (!able_.has(kind)) return;
    add_load(std::move(experiment), callers, [callers, work](Target& target) {
      const Clients clients = connect_clients(target, callers, std::min(callers, most_clients));
      return std::make_shared<Crowd>(callers, spread(clients, work));
    });
  }
  // The warm-up lasts until there were as many turns as contenders, so that all of them are in the queue; if turns take
  // long, it ends after a time limit.
  void add_waiters(Parameters parameters, std::size_t waiters) {
    constexpr seconds longest_warm_up{3};
    if (waiters == 0) return;
    parameters[parameter::waiters] = number(waiters);
    const std::size_t count = waiters + 1;  // including the holder
    add_load(
        {scenario::contention, std::move(parameters), of_contention, true}, count,
        [waiters, count](Target& target) {
          return contenders(connect_clients(target, count, std::min(waiters, most_clients)), count);
        },
        {count, longest_warm_up}, true);
  }
  void add_held(std::size_t count) {
    Experiment experiment{scenario::throughput, {{parameter::held, number(count)}}, of_held};
    experiment.expected = plan_.repeats * time_to_hold(plan_);
    experiment.sides = [&plan = plan_, count](Target& target, const std::stop_token&) {
      return std::vector<Side>{{Who::dlock, holding(target, plan, count)}};
    };
    add(std::move(experiment));
  }

  Target& target_;
  const Plan& plan_;
  const Capabilities able_;
  std::vector<Step> steps_;
};

struct Scenario {
  const char* name;
  void (StepTable::*add)();
};

constexpr std::array scenarios{
    Scenario{scenario::latency, &StepTable::add_latency},
    Scenario{scenario::throughput, &StepTable::add_throughput},
    Scenario{scenario::contention, &StepTable::add_contention},
    Scenario{scenario::recovery, &StepTable::add_recovery},
};

}  // namespace

std::vector<std::string> scenario_names() {
  std::vector<std::string> names;
  names.reserve(scenarios.size());
  for (const Scenario& each : scenarios) names.emplace_back(each.name);
  return names;
}

std::vector<Step> steps_of(Target& target, const Plan& plan) {
  StepTable table(target, plan);
  for (const Scenario& each : scenarios) {
    if (plan.scenarios.empty() || std::ranges::find(plan.scenarios, each.name) != plan.scenarios.end()) {
      (table.*each.add)();
    }
  }
  return table.finish();
}

}  // namespace dlock::bench
