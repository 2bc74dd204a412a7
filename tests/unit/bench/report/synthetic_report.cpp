#include "tests/unit/bench/report/synthetic_report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bench/report/figures.hpp"

namespace dlock::bench {

namespace {

struct Service {
  const char* backend;
  const char* strategy;
  double pair_us;      // of an acquire and release
  double floor_ratio;  // dlock's p50 to that by hand; 0: no floor
  double most_pairs;   // a second, however many callers there are
  double hand_off_us;  // with few waiters
  double herd;         // server operations a hand-off for each waiter
  double polling;      // us; 0: waiters are woken
  double lease_ms;     // 0: the lock ends with the process
  double most_locks;   // 0: any number
};

constexpr Service all_services[] = {
    {"memory", "queue", 2.1, 0, 1.4e6, 9, 0, 0, 2000, 0},
    {"memory", "watch", 2.2, 0, 1.3e6, 11, 1, 0, 2000, 0},
    {"memory", "poll", 2.0, 0, 1.5e6, 2600, 0.4, 5000, 2000, 0},
    {"file", "", 11, 1.62, 1.6e5, 38, 0.2, 0, 0, 0},
    {"redis", "queue", 61, 1.11, 1.35e5, 92, 0, 0, 2000, 0},
    {"redis", "broadcast", 58, 1.08, 1.4e5, 130, 1, 0, 2000, 0},
    {"redis", "poll", 57, 1.06, 1.45e5, 24000, 0.9, 50000, 2000, 0},
    {"zookeeper", "sequential", 1450, 0.71, 9.2e3, 1600, 0, 0, 4000, 0},
    {"zookeeper", "sequential-herd", 1480, 0.73, 9e3, 1900, 1.1, 0, 4000, 0},
    {"zookeeper", "ephemeral", 980, 1.04, 1.2e4, 2100, 1.6, 0, 4000, 0},
    {"etcd", "", 600, 0.95, 2.8e4, 660, 0, 0, 2000, 0},
    {"postgresql", "table", 690, 1.21, 6.1e3, 820, 0, 0, 2000, 0},
    {"postgresql", "optimistic", 640, 1.19, 6.6e3, 31000, 0.8, 60000, 2000, 0},
    {"postgresql", "for-update", 410, 1.31, 7.5e3, 300, 0, 0, 0, 64},
    {"postgresql", "advisory", 150, 1.46, 2.4e4, 210, 0, 0, 0, 64},
};

constexpr int repeats = 5;

// That send other requests than dlock does, and so have two floors.
bool is_simpler_by_hand(const Service& service) {
  const std::string backend = service.backend;
  return backend == "redis" || backend == "postgresql";
}

// Numbers in [-1, 1), the same ones in each run.
class Noise {
 public:
  double next() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<double>(state_ >> 11U) / static_cast<double>(1ULL << 52U) - 1;
  }

 private:
  std::uint64_t state_ = 42;
};

class Generator {
 public:
  Report report() {
    Report report{.started = "2026-11-22T10:00:00Z",
                  .seconds = 1984,
                  .quick = false,
                  .complete = true,
                  .command =
                      "dlock bench --url memory:// --url file:///run/lock --url redis://localhost:6379"
                      " --url zookeeper://localhost:2181 --url postgresql://dlock@localhost:5432/dlock",
                  .environment = {{"processor", "AMD EPYC 7R13 Processor"},
                                  {"processors", "2"},
                                  {"memory", "7.6 GiB"},
                                  {"kernel", "Linux 6.1.0-28-amd64 x86_64"},
                                  {"compiler", "GCC 12.2.0"},
                                  {"optimised", "yes"},
                                  {"dlock", "0.1.0"},
                                  {"revision", "96a16a7c0de5"}},
                  .services = {},
                  .measurements = {},
                  .problems = {}};
    for (const Service& each : all_services) add(report, each);
    report.problems.push_back({"memory poll", "recovery", "no other process can wait for a lock of this one"});
    report.problems.push_back(
        {"redis-sentinel", "", "cannot connect to redis-sentinel://localhost:26379: connection refused"});
    return report;
  }

 private:
  // A figure whose repeats spread by that share.
  Figure figure(const char* name, const char* unit, Better better, double value, double spread = 0.03) {
    Figure result{name, unit, better, {}};
    for (int i = 0; i < repeats; ++i) result.repeats.push_back(value * (1 + spread * noise_.next()));
    return result;
  }

  // Log-normal, from the middle to a tail that is as long as the service is busy.
  static std::vector<CdfPoint> distribution(double p50, double tail) {
    constexpr int points = 120;
    std::vector<CdfPoint> cdf;
    for (int i = 0; i <= points; ++i) {
      const double nines = 4.3 * i / points;  // closer together towards the slow end
      const double share = i == points ? 1 : 1 - std::pow(10, -nines) * 0.999;
      cdf.push_back({p50 * (0.82 + 0.05 * nines + tail * std::pow(nines / 3, 4)), share});
    }
    return cdf;
  }

  std::vector<Figure> percentiles(double p50, double tail) {
    return {figure(figure::p50, "us", Better::lower, p50),
            figure(figure::p90, "us", Better::lower, p50 * 1.15),
            figure(figure::p99, "us", Better::lower, p50 * (1.3 + tail / 5), 0.1),
            figure(figure::p999, "us", Better::lower, p50 * (1.6 + tail), 0.3),
            figure(figure::longest, "us", Better::lower, p50 * (2 + 4 * tail), 0.6),
            figure(figure::samples, "", Better::neither, 1e6 / p50)};
  }

  void add_latency(Report& report, const Service& service, const std::string& label, const char* scenario,
                   const Parameters& parameters, double more_us) {
    const double p50 = service.pair_us + more_us;
    report.measurements.push_back(
        {scenario, label, Who::dlock, parameters, percentiles(p50, 1.5), distribution(p50, 1.5)});
    if (service.floor_ratio == 0) return;
    const double floor = service.pair_us / service.floor_ratio + more_us * (service.floor_ratio < 1 ? 1.5 : 1);
    report.measurements.push_back(
        {scenario, label, Who::by_hand, parameters, percentiles(floor, 1.1), distribution(floor, 1.1)});
    if (!is_simpler_by_hand(service) || more_us > 0) return;
    report.measurements.push_back(
        {scenario, label, Who::same_requests, parameters, percentiles(floor * 1.1, 1.1), distribution(floor, 1.1)});
  }

  void add_throughput(Report& report, const Service& service, const std::string& label) {
    for (const double callers : {1.0, 8.0, 64.0, 256.0}) {
      if (service.most_locks > 0 && callers > service.most_locks) continue;
      const double alone = 1e6 / service.pair_us * callers;
      const double pairs = 1 / (1 / alone + 1 / service.most_pairs);
      const double cpu = 14 + 20 / callers;
      const Parameters parameters{{parameter::callers, callers}};
      report.measurements.push_back(
          {scenario::throughput,
           label,
           Who::dlock,
           parameters,
           {figure(figure::throughput, "1/s", Better::higher, pairs),
            figure(figure::p50, "us", Better::lower, 1e6 / pairs * callers),
            figure(figure::p99, "us", Better::lower, 2.2e6 / pairs * callers, 0.1),
            figure(figure::client_cpu, "us", Better::lower, cpu), figure(figure::operations, "", Better::lower, 2, 0),
            figure(figure::context_switches, "", Better::lower, 1.5)},
           {}});
      if (service.floor_ratio == 0) continue;
      const double ratio = callers == 1 ? 1 / service.floor_ratio : 1.1 + 0.2 * std::log2(callers) / 2;
      for (const Who who : {Who::by_hand, Who::same_requests}) {
        if (who == Who::same_requests && !is_simpler_by_hand(service)) continue;
        report.measurements.push_back({scenario::throughput,
                                       label,
                                       who,
                                       parameters,
                                       {figure(figure::throughput, "1/s", Better::higher, pairs / ratio),
                                        figure(figure::client_cpu, "us", Better::lower, cpu * 1.3),
                                        figure(figure::context_switches, "", Better::lower, 2)},
                                       {}});
      }
    }
    for (const double outstanding : {64.0, 10'000.0}) {
      if (service.most_locks > 0 && outstanding > service.most_locks) continue;
      report.measurements.push_back({scenario::throughput,
                                     label,
                                     Who::dlock,
                                     {{parameter::outstanding, outstanding}},
                                     {figure(figure::throughput, "1/s", Better::higher, service.most_pairs * 1.05),
                                      figure(figure::client_cpu, "us", Better::lower, 9),
                                      figure(figure::context_switches, "", Better::lower, 0.1)},
                                     {}});
    }
  }

  void add_contention(Report& report, const Service& service, const std::string& label, const char* scenario,
                      Parameters parameters, double waiters, double more_us) {
    parameters[parameter::waiters] = waiters;
    const double work = service.herd * waiters * service.pair_us / 40;
    const double p50 = service.hand_off_us + service.polling / std::sqrt(waiters) + work + more_us;
    std::vector<Figure> figures = percentiles(p50, 2);
    figures.push_back(figure(figure::hand_offs, "1/s", Better::higher, 1e6 / (p50 + 1000)));
    figures.push_back(figure(figure::fairness, "", Better::higher, service.polling > 0 ? 0.62 : 0.995, 0.004));
    figures.push_back(figure(figure::longest_wait, "us", Better::lower, (p50 + 1000) * waiters * 1.2));
    if (std::string(service.backend) != "file") {
      figures.push_back(figure(figure::operations, "", Better::lower, 2 + service.herd * waiters));
      const double wake_ups = service.polling > 0 ? 0 : 1 + (service.herd >= 1 ? waiters - 1 : 0);
      figures.push_back(figure(figure::wake_ups, "", Better::lower, wake_ups));
    }
    report.measurements.push_back(
        {scenario, label, Who::dlock, std::move(parameters), std::move(figures), distribution(p50, 2)});
  }

  void add_others(Report& report, const Service& service, const std::string& label) {
    const double recovery = service.lease_ms == 0 ? 2400 : service.lease_ms * 1000 * 0.86;
    if (label != "memory poll") {
      report.measurements.push_back({scenario::recovery,
                                     label,
                                     Who::dlock,
                                     {{parameter::lease_ms, service.lease_ms}},
                                     {figure(figure::p50, "us", Better::lower, recovery, 0.12),
                                      figure(figure::longest, "us", Better::lower, recovery * 1.15, 0)},
                                     distribution(recovery, 0.1)});
    }
    const double leases = service.most_locks > 0 ? service.most_locks : 1000;
    std::vector<Figure> holding = {
        figure(figure::client_cpu, "%", Better::lower, service.lease_ms == 0 ? 0.02 : 1.1 + service.pair_us / 900),
        figure(figure::memory, "B", Better::lower, service.most_locks > 0 ? 41'000 : 1450)};
    if (label != "file") {
      holding.push_back(figure(figure::operations, "", Better::lower, service.lease_ms == 0 ? 0.01 : 1.5));
    }
    report.measurements.push_back({scenario::holding,
                                   label,
                                   Who::dlock,
                                   {{parameter::leases, leases}, {parameter::lease_ms, service.lease_ms}},
                                   std::move(holding),
                                   {}});
    const double wait = service.hand_off_us * 2 + service.polling / 2;
    report.measurements.push_back(
        {scenario::mix,
         label,
         Who::dlock,
         {{parameter::callers, 64}, {parameter::names, 1000}, {parameter::hold_us, 500}},
         {figure(figure::throughput, "1/s", Better::higher, 1 / (1 / service.most_pairs + 4e-5)),
          figure(figure::p50, "us", Better::lower, wait), figure(figure::p99, "us", Better::lower, wait * 14, 0.1),
          figure(figure::longest, "us", Better::lower, wait * 60, 0.4),
          figure(figure::fairness, "", Better::higher, 0.97, 0.01)},
         distribution(wait, 6)});
  }

  void add_sharing(Report& report, const Service& service, const std::string& label) {
    const std::string strategy = service.strategy;
    if (strategy != "queue" && strategy != "sequential" && strategy != "table") return;
    const auto add = [&](Parameters parameters, std::vector<Figure> figures) {
      report.measurements.push_back(
          {scenario::sharing, label, Who::dlock, std::move(parameters), std::move(figures), {}});
    };
    for (const double reads : {95.0, 50.0}) {
      for (const double callers : {8.0, 64.0}) {
        const double pairs = service.most_pairs * reads / 200 / std::log2(callers);
        add({{parameter::callers, callers}, {parameter::reads, reads}},
            {figure(figure::throughput, "1/s", Better::higher, pairs)});
      }
    }
    const double wait = service.hand_off_us + service.pair_us;
    add({{parameter::readers, 8}},
        {figure(figure::p50, "us", Better::lower, wait), figure(figure::p99, "us", Better::lower, wait * 3, 0.1)});
    add({{parameter::callers, 64}, {parameter::permits, 4}},
        {figure(figure::throughput, "1/s", Better::higher, service.most_pairs / 3)});
  }

  void add(Report& report, const Service& service) {
    const std::string backend = service.backend;
    const std::string strategy = service.strategy;
    const std::string label = strategy.empty() ? backend : backend + " " + strategy;
    const bool remote = backend != "memory" && backend != "file";
    Settings settings;
    if (backend == "redis") settings = {{"version", "7.0.15"}, {"appendonly", "no"}, {"appendfsync", "everysec"}};
    if (backend == "zookeeper") settings = {{"version", "3.8.0"}, {"servers", "1"}, {"forceSync", "yes"}};
    if (backend == "postgresql") settings = {{"version", "15.10"}, {"fsync", "on"}, {"synchronous_commit", "on"}};
    report.services.push_back(
        {label, backend, strategy,
         backend + (remote ? "://localhost" : "://") + (strategy.empty() ? "" : "?strategy=" + strategy),
         std::move(settings)});
    add_latency(report, service, label, scenario::latency, {}, 0);
    add_throughput(report, service, label);
    for (const double waiters : {2.0, 8.0, 32.0, 128.0, 256.0}) {
      if (service.most_locks > 0 && waiters > service.most_locks) continue;
      add_contention(report, service, label, scenario::contention, {}, waiters, 0);
    }
    add_others(report, service, label);
    add_sharing(report, service, label);
    if (!remote) return;
    const double trips = backend == "zookeeper" ? 3 : 2;
    for (const double round_trip : {0.0, 1.0, 5.0, 20.0}) {
      const Parameters at{{parameter::round_trip_ms, round_trip}};
      add_latency(report, service, label, scenario::distance, at, trips * round_trip * 1000);
      add_contention(report, service, label, scenario::distance, at, 8, round_trip * 1000);
    }
  }

  Noise noise_;
};

}  // namespace

Report synthetic_report() {
  return Generator().report();
}

Report without_scenario(Report report, std::string_view scenario) {
  std::erase_if(report.measurements, [&](const Measurement& each) { return each.scenario == scenario; });
  return report;
}

}  // namespace dlock::bench
