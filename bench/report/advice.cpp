#include "bench/report/advice.hpp"

#include <algorithm>
#include <functional>
#include <optional>

#include <fmt/core.h>

#include "bench/report/durability.hpp"
#include "bench/report/figures.hpp"
#include "bench/report/ranking.hpp"
#include "bench/report/selection.hpp"
#include "bench/report/units.hpp"

namespace dlock::bench {

namespace {

// Finds the measurement that a service is judged by; nullptr: it takes no part.
using Find = std::function<const Measurement*(const ServiceInfo&)>;

std::vector<Contender> contenders(const Report& report, std::string_view figure, const Find& find) {
  std::vector<Contender> result;
  for (const ServiceInfo& each : report.services) {
    if (!between_machines(each)) continue;
    const Measurement* measurement = find(each);
    if (measurement == nullptr) continue;
    result.push_back({each.label, measurement, measurement->figure(figure)});
  }
  return result;
}

std::string value_text(const Contender& contender) {
  return quantity_text(contender.figure->median(), contender.figure->unit);
}

std::string next_text(const Ranking& ranking) {
  if (ranking.rest.empty()) return "";
  return fmt::format("; next is {} with {}", ranking.rest.front().service, value_text(ranking.rest.front()));
}

class Adviser {
 public:
  explicit Adviser(const Report& report) : report_(report) {}

  std::vector<Advice> advise() {
    add_one_machine();
    for (const Durability each :
         {Durability::everything, Durability::last_moments, Durability::forgotten, Durability::unknown}) {
      add_uncontended(each);
    }
    add_throughput();
    add_hand_offs();
    add_fairness();
    add_recovery();
    add_holding();
    add_distance();
    return std::move(advice_);
  }

 private:
  // None has an opinion of nobody.
  void add(std::string question, const Ranking& ranking, std::string why) {
    if (!ranking.best.empty()) advice_.push_back({std::move(question), names_text(ranking.best), std::move(why)});
  }

  void add_one_machine() {
    for (const ServiceInfo& each : report_.services) {
      const auto p50 = median_of(latency_of(report_, each.label, Who::dlock), figure::p50);
      if (each.backend != "file" || !p50) continue;
      advice_.push_back(
          {"All programs run on one machine", each.label,
           fmt::format("acquire and release of a free lock take {} (p50); needs no server, and the kernel "
                       "frees the lock of a process that dies",
                       quantity_text(*p50, "us"))});
    }
  }

  void add_uncontended(Durability durability) {
    const Ranking ranking = rank(contenders(report_, figure::p50,
                                            [&](const ServiceInfo& service) -> const Measurement* {
                                              if (durability_of(service) != durability) return nullptr;
                                              return latency_of(report_, service.label, Who::dlock);
                                            }),
                                 Better::lower);
    if (ranking.best.empty()) return;
    add(fmt::format("The lock is mostly free; {}", to_string(durability)), ranking,
        fmt::format("acquire and release take {} (p50){}", value_text(ranking.best.front()), next_text(ranking)));
  }

  // Only those are compared who were measured with so many.
  void add_with(const std::string& question, const char* scenario, const char* parameter, double count,
                const char* figure, Better better, const std::function<std::string(const Ranking&)>& why) {
    const Ranking ranking =
        rank(contenders(report_, figure,
                        [&](const ServiceInfo& service) {
                          return report_.find(scenario, service.label, Who::dlock, {{parameter, count}});
                        }),
             better);
    if (!ranking.best.empty()) add(question, ranking, why(ranking) + left_out(scenario, parameter, count));
  }

  std::string left_out(const char* scenario, const char* parameter, double count) {
    std::string names;
    for (const ServiceInfo& each : report_.services) {
      if (!between_machines(each) || report_.find(scenario, each.label, Who::dlock, {{parameter, count}}) != nullptr) {
        continue;
      }
      const auto points = points_of(report_, scenario, each.label, Who::dlock, parameter);
      if (!points.empty()) names += (names.empty() ? "" : ", ") + each.label;
    }
    return names.empty() ? "" : "; not measured with that: " + names;
  }

  void add_throughput() {
    const auto callers = counts_between_machines(scenario::throughput, parameter::callers);
    if (callers.empty()) return;
    add_with("Many locks are taken at the same time", scenario::throughput, parameter::callers, callers.back(),
             figure::throughput, Better::higher, [&](const Ranking& ranking) {
               return fmt::format("{} acquires and releases with {}{}", value_text(ranking.best.front()),
                                  count_text(callers.back(), "caller"), next_text(ranking));
             });
  }

  void add_hand_offs() {
    const auto waiters = counts_between_machines(scenario::contention, parameter::waiters);
    for (const double each : {waiters.empty() ? 0 : waiters.front(), waiters.empty() ? 0 : waiters.back()}) {
      const bool few = !waiters.empty() && each == waiters.front();
      if (waiters.empty() || (!few && waiters.size() == 1)) continue;
      add_with(few ? "Few wait for one lock" : "Many wait for one lock", scenario::contention, parameter::waiters, each,
               figure::p50, Better::lower, [&](const Ranking& ranking) {
                 return fmt::format("from release to the next holder {} (p50) with {}{}",
                                    value_text(ranking.best.front()), count_text(each, "waiter"), next_text(ranking));
               });
    }
  }

  void add_fairness() {
    const auto waiters = counts_between_machines(scenario::contention, parameter::waiters);
    if (waiters.empty()) return;
    add_with("Everybody gets a turn", scenario::contention, parameter::waiters, waiters.back(), figure::fairness,
             Better::higher, [&](const Ranking& ranking) {
               std::string text = fmt::format("fairness {} with {}, where 1 is an equal share for each",
                                              value_text(ranking.best.front()), count_text(waiters.back(), "waiter"));
               if (!ranking.rest.empty()) {
                 text += fmt::format("; least fair is {} with {}", ranking.rest.back().service,
                                     value_text(ranking.rest.back()));
               }
               return text;
             });
  }

  void add_recovery() {
    const Ranking ranking = rank(
        contenders(report_, figure::p50,
                   [&](const ServiceInfo& service) { return only_one_of(report_, scenario::recovery, service.label); }),
        Better::lower);
    if (ranking.best.empty()) return;
    const auto with_lease = [](const Contender& contender) {
      const double lease = parameter_of(*contender.measurement, parameter::lease_ms).value_or(0);
      return value_text(contender) + (lease > 0 ? " of a lease of " + quantity_text(lease * 1000, "us") : "");
    };
    std::string why = with_lease(ranking.best.front()) + " after the holder was killed a waiter has the lock";
    if (!ranking.rest.empty()) {
      why += fmt::format("; next is {} with {}", ranking.rest.front().service, with_lease(ranking.rest.front()));
    }
    add("Holders may crash", ranking, std::move(why));
  }

  // Few locks cost less than many: only those are compared who held as many.
  void add_holding() {
    double most = 0;
    const auto leases = [](const Measurement& each) { return parameter_of(each, parameter::leases).value_or(0); };
    const auto all = contenders(report_, figure::client_cpu, [&](const ServiceInfo& service) {
      return only_one_of(report_, scenario::holding, service.label);
    });
    for (const Contender& each : all) most = std::max(most, leases(*each.measurement));
    std::vector<Contender> compared;
    std::string others;
    for (const Contender& each : all) {
      if (leases(*each.measurement) == most) {
        compared.push_back(each);
      } else {
        others += (others.empty() ? "; held fewer, so not compared: " : ", ") + each.service;
      }
    }
    const Ranking ranking = rank(compared, Better::lower);
    if (ranking.best.empty()) return;
    add("Many locks are held for long", ranking,
        fmt::format("{} held take {} of a core{}{}", count_text(most, "lock"), value_text(ranking.best.front()),
                    next_text(ranking), others));
  }

  void add_distance() {
    std::vector<double> trips;
    for (const double each : values_of(report_, scenario::distance, parameter::round_trip_ms)) {
      if (each > 0) trips.push_back(each);
    }
    if (trips.empty()) return;
    add_with("The service is far away", scenario::distance, parameter::round_trip_ms, trips.back(), figure::p50,
             Better::lower, [&](const Ranking& ranking) {
               const double best = ranking.best.front().figure->median();
               return fmt::format("acquire and release take {} (p50), {:.1f} round trips of {}{}",
                                  value_text(ranking.best.front()), best / 1000 / trips.back(),
                                  quantity_text(trips.back() * 1000, "us"), next_text(ranking));
             });
  }

  std::vector<double> counts_between_machines(const char* scenario, const char* parameter) {
    std::vector<double> all;
    for (const ServiceInfo& each : report_.services) {
      if (!between_machines(each)) continue;
      const auto points = points_of(report_, scenario, each.label, Who::dlock, parameter);
      for (const Point& point : points) all.push_back(point.x);
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }

  const Report& report_;
  std::vector<Advice> advice_;
};

}  // namespace

std::vector<Advice> advice_of(const Report& report) {
  return Adviser(report).advise();
}

std::vector<Herd> herds_of(const Report& report) {
  constexpr double noticeable = 5;  // operations a hand-off, more than with few waiters
  // Double is what a service may need once it is contended at all, whatever the number of waiters.
  constexpr double growth = 4;
  std::vector<Herd> herds;
  for (const ServiceInfo& each : report.services) {
    if (!between_machines(each)) continue;
    const auto points = points_of(report, scenario::contention, each.label, Who::dlock, parameter::waiters);
    const auto few = median_of(fewest_of(points), figure::operations);
    const auto many = median_of(most_of(points), figure::operations);
    if (!few || !many || *many < *few * growth || *many < *few + noticeable) continue;
    herds.push_back({each.label, {points.front().x, *few}, {points.back().x, *many}});
  }
  return herds;
}

}  // namespace dlock::bench
