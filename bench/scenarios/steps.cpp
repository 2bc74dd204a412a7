#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <utility>

#include "bench/report/figures.hpp"
#include "bench/report/names.hpp"
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

using namespace quantity;

constexpr std::array of_open_loop{p50, p90, p99, p999, longest, samples};
// In an open loop, waiting for the next arrival takes some context switches as well.
constexpr std::array of_latency{p50, p90, p99, p999, longest, samples, context_switches};
constexpr std::array of_callers{throughput, p50, p99, client_cpu_each, context_switches, operations};
constexpr std::array of_shared{throughput};
constexpr std::array of_held{client_cpu_share, operations, memory, lease};
constexpr std::array of_contention{hand_offs, p50, p90, p99, longest, fairness, longest_wait, operations, wake_ups};
constexpr std::array of_names{throughput, p50, p99, longest, fairness};
constexpr std::array of_waits{p50, p99};
constexpr std::array of_kills{p50, lease};
constexpr std::array of_all_kills{longest};

constexpr int percents_of_reads[] = {95, 50};
constexpr std::size_t sharers[] = {8, 64};
constexpr std::size_t permit_count = 4;
constexpr std::size_t readers = 8;  // that one writer waits for
constexpr std::size_t callers_of_names = 64;
constexpr std::size_t name_count = 1000;
// Enough for the next one to be waiting already, however far away the service is.
constexpr std::size_t distant_waiters = 8;
constexpr std::size_t most_clients = 8;

std::vector<Side> only_dlock(Rounds rounds) {
  return {{Who::dlock, std::move(rounds)}};
}

class Table {
 public:
  Table(Target& target, const Plan& plan) : target_(target), plan_(plan), able_(target.connect(1).capabilities()) {}

  void add_latency() {
    add_latency(plan_.rate ? Parameters{{parameter::rate, *plan_.rate}} : Parameters(), plan_.rate);
    for (const int each : round_trips()) add_latency({{parameter::round_trip_ms, each}}, std::nullopt);
  }
  void add_throughput() {
    for (const std::size_t callers : plan_.callers) {
      if (possible(callers)) add_callers(callers);
    }
    for (const std::size_t count : most_possible(plan_.outstanding)) add_outstanding(count);
    if (able_.has(LockKind::read_write)) {
      for (const int percent : percents_of_reads) {
        for (const std::size_t callers : sharers) {
          add_crowd(scenario::throughput, {{parameter::callers, number(callers)}, {parameter::reads, percent}},
                    of_shared, false, callers, most_clients, readers_and_writers(percent));
        }
      }
    }
    if (able_.has(LockKind::semaphore)) {
      const std::size_t callers = sharers[1];
      add_crowd(scenario::throughput, {{parameter::callers, number(callers)}, {parameter::permits, permit_count}},
                of_shared, false, callers, most_clients, permits(permit_count));
    }
    for (const std::size_t count : most_possible({plan_.held})) add_held(count);
  }
  void add_contention() {
    for (const std::size_t waiters : plan_.waiters) add_waiters({}, waiters);
    for (const int each : round_trips()) add_waiters({{parameter::round_trip_ms, each}}, distant_waiters);
    for (const std::size_t callers : most_possible({callers_of_names})) {
      add_crowd(scenario::contention, {{parameter::callers, number(callers)}, {parameter::names, name_count}}, of_names,
                true, callers, 1, many_names(name_count));
    }
    if (able_.has(LockKind::read_write)) {
      add_crowd(scenario::contention, {{parameter::readers, readers}}, of_waits, false, readers + 1, most_clients,
                writer_among(readers));
    }
  }
  void add_recovery() {
    if (plan_.dlock_program.empty() || plan_.kills <= 0 || able_.scope == Scope::process) return;
    add({.scenario = scenario::recovery,
         .parameters = {},
         .figures = of_kills,
         .of_all = of_all_kills,
         .distribution = true,
         .repeats = plan_.kills,
         .expected = plan_.kills * time_of_recovery(able_),
         .sides = [&plan = plan_](Target& target, const std::stop_token& stop) {
           return only_dlock(recovery(target, plan, stop));
         }});
  }
  std::vector<Step> finish() { return std::move(steps_); }

 private:
  static double number(std::size_t count) { return static_cast<double>(count); }
  // So many locks of a client are worth trying.
  [[nodiscard]] bool possible(std::size_t locks) const {
    return target_.most_locks() == 0 || locks <= target_.most_locks();
  }
  // As many as are worth trying, none of them twice.
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
  [[nodiscard]] nanoseconds time_of_turns(bool floor) const {
    return (floor ? 2 : 1) * plan_.repeats * (plan_.warm_up + plan_.round);
  }
  [[nodiscard]] nanoseconds time_of_one_load() const { return plan_.warm_up + plan_.repeats * plan_.round; }

  void add(const Experiment& experiment) {
    Measurement named;
    named.scenario = experiment.scenario;
    named.parameters = experiment.parameters;
    steps_.push_back({.what = name_of(named),
                      .expected = experiment.expected,
                      .run = [&target = target_, experiment](const std::stop_token& stop) {
                        return measure(target, experiment, stop);
                      }});
  }

  // Client and floor stay connected.
  void add_latency(Parameters parameters, std::optional<double> rate) {
    const auto sides = [&plan = plan_, rate](Target& target, const std::stop_token&) {
      const auto rounds = [&](const Crowd::MakeWork& make) {
        return rate ? open_loop(plan, *rate, make)
                    : separate_rounds(
                          plan, 1, [make] { return make; }, nullptr);
      };
      auto both = only_dlock(rounds(spread(connect_clients(target, 1, 1), own_lock)));
      if (target.has_floor()) {
        const std::shared_ptr<Floor> floor = target.make_floor(lock_name("floor"));
        both.push_back(
            {Who::by_hand, rounds([floor](std::size_t, const std::stop_token&) { return floor_pairs(floor); })});
      }
      return both;
    };
    add({.scenario = scenario::latency,
         .parameters = std::move(parameters),
         .figures = rate ? std::span<const Quantity>(of_open_loop) : of_latency,
         .distribution = true,
         .repeats = plan_.repeats,
         .expected = time_of_turns(target_.has_floor()),
         .sides = sides});
  }
  // Client and floors are never connected at the same time: a service may not have connections for all of them. The
  // operations of a floor are known, and Redis does not tell a client's SET from a script's.
  void add_callers(std::size_t callers) {
    const bool floor = target_.has_floor() && (target_.most_floors() == 0 || callers <= target_.most_floors());
    const auto sides = [&plan = plan_, callers, floor](Target& target, const std::stop_token&) {
      const auto connect = [&target, callers] { return spread(connect_clients(target, callers, 1), own_lock); };
      auto both = only_dlock(separate_rounds(plan, callers, connect, &target));
      if (floor) {
        const Crowd::MakeWork make = [&target](std::size_t caller, const std::stop_token&) {
          return floor_pairs(target.make_floor(lock_name("floor", caller)));
        };
        both.push_back({Who::by_hand, separate_rounds(
                                          plan, callers, [make] { return make; }, nullptr)});
      }
      return both;
    };
    add({.scenario = scenario::throughput,
         .parameters = {{parameter::callers, number(callers)}},
         .figures = of_callers,
         .repeats = plan_.repeats,
         .expected = time_of_turns(floor),
         .sides = sides});
  }
  void add_outstanding(std::size_t count) {
    constexpr seconds longest_warm_up{5};
    add({.scenario = scenario::throughput,
         .parameters = {{parameter::outstanding, number(count)}},
         .figures = of_callers,
         .repeats = plan_.repeats,
         .expected = time_of_one_load(),
         .sides = [&plan = plan_, count](Target& target, const std::stop_token& stop) {
           const WarmUp warm_up{count, longest_warm_up};
           return only_dlock(rounds_of(plan, std::make_shared<AsyncLoad>(target, count), warm_up, &target, stop));
         }});
  }
  // They are spread over at most so many clients as over processes.
  void add_crowd(const char* scenario, Parameters parameters, std::span<const Quantity> figures, bool distribution,
                 std::size_t callers, std::size_t clients, const WorkOnClient& work) {
    if (!possible(callers)) return;
    add({.scenario = scenario,
         .parameters = std::move(parameters),
         .figures = figures,
         .distribution = distribution,
         .repeats = plan_.repeats,
         .expected = time_of_one_load(),
         .sides = [&plan = plan_, callers, clients, work](Target& target, const std::stop_token& stop) {
           const Clients connected = connect_clients(target, callers, std::min(callers, clients));
           return only_dlock(
               rounds_of(plan, std::make_shared<Crowd>(callers, spread(connected, work)), {}, nullptr, stop));
         }});
  }
  // The warm-up lasts until there have been as many turns as there are contenders, so that all of them stand in line;
  // where turns take long, that has to be enough after a while.
  void add_waiters(Parameters parameters, std::size_t waiters) {
    constexpr seconds longest_warm_up{3};
    const std::size_t count = waiters + 1;  // one of them holds
    if (waiters == 0 || !possible(count)) return;
    parameters[parameter::waiters] = number(waiters);
    add({.scenario = scenario::contention,
         .parameters = std::move(parameters),
         .figures = of_contention,
         .distribution = true,
         .repeats = plan_.repeats,
         .expected = time_of_one_load() + static_cast<int>(count) * contended_hold,
         .sides = [&plan = plan_, waiters, count](Target& target, const std::stop_token& stop) {
           const Clients connected = connect_clients(target, count, std::min(waiters, most_clients));
           const WarmUp warm_up{count, longest_warm_up};
           return only_dlock(rounds_of(plan, contenders(connected, count), warm_up, &target, stop));
         }});
  }
  void add_held(std::size_t count) {
    add({.scenario = scenario::throughput,
         .parameters = {{parameter::held, number(count)}},
         .figures = of_held,
         .repeats = plan_.repeats,
         .expected = plan_.repeats * time_to_hold(plan_),
         .sides = [&plan = plan_, count](Target& target, const std::stop_token&) {
           return only_dlock(holding(target, plan, count));
         }});
  }

  Target& target_;
  const Plan& plan_;
  const Capabilities able_;
  std::vector<Step> steps_;
};

struct Scenario {
  const char* name;
  void (Table::*add)();
};

constexpr std::array scenarios{
    Scenario{scenario::latency, &Table::add_latency},
    Scenario{scenario::throughput, &Table::add_throughput},
    Scenario{scenario::contention, &Table::add_contention},
    Scenario{scenario::recovery, &Table::add_recovery},
};

}  // namespace

std::vector<std::string> scenario_names() {
  std::vector<std::string> names;
  for (const Scenario& each : scenarios) names.emplace_back(each.name);
  return names;
}

std::vector<Step> steps_of(Target& target, const Plan& plan) {
  Table table(target, plan);
  for (const Scenario& each : scenarios) {
    if (plan.scenarios.empty() || std::ranges::find(plan.scenarios, each.name) != plan.scenarios.end()) {
      (table.*each.add)();
    }
  }
  return table.finish();
}

}  // namespace dlock::bench
