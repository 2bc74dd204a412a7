#include "bench/report/tables.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string_view>

#include <fmt/core.h>

#include "bench/measure/statistics.hpp"
#include "bench/report/figures.hpp"

namespace dlock::bench {

namespace {

bool between_machines(const ServiceInfo& service) noexcept {
  return service.backend != "memory" && service.backend != "file";
}

// Adds a column with a row for each service, unless it has no value.
void add_column(Table& table, const Report& report, Table::Column column,
                const std::function<Cell(const std::string& service)>& cell_of) {
  std::vector<Cell> cells;
  for (const std::string& each : report.labels()) cells.push_back(cell_of(each));
  if (std::none_of(cells.begin(), cells.end(),
                   [](const Cell& each) { return each.value || each.text != not_measured; }))
    return;
  if (table.columns.empty()) {
    for (const std::string& each : report.labels()) table.rows.push_back({each, {}});
  }
  table.columns.push_back(std::move(column));
  for (std::size_t i = 0; i < cells.size(); ++i) table.rows[i].cells.push_back(std::move(cells[i]));
}

Table without_empty_rows(Table table) {
  std::erase_if(table.rows, [](const Table::Row& row) {
    return std::none_of(row.cells.begin(), row.cells.end(), [](const Cell& each) { return each.value.has_value(); });
  });
  return table;
}

// A number of callers or waiters, and the figure.
struct Counted {
  double count;
  double value;
};

enum class Pick { only, fewest, most };

// A figure of the measurement with the fewest, or the most, callers or waiters.
struct Choice {
  const char* name;
  const char* noun;  // for the parameter; nullptr: the name is complete
  const char* scenario;
  const char* parameter;
  Pick pick;
  const char* figure;
  const char* unit;
  Better better;
  bool fits_terminal = true;

  [[nodiscard]] std::optional<Counted> of(const Report& report, const std::string& service) const {
    std::optional<Counted> result;
    for (const Measurement& each : report.measurements) {
      if (each.service != service || each.scenario != scenario || each.who != Who::dlock) continue;
      const bool fits = pick == Pick::only ? !each.parameter(parameter::round_trip_ms)
                                           : each.parameters.size() == 1 && each.parameter(parameter);
      const auto value = median_of(&each, figure);
      const double count = each.parameter(parameter).value_or(0);
      if (fits && value && (!result || picks(count, result->count))) result = Counted{count, *value};
    }
    return result;
  }
  [[nodiscard]] bool picks(double count, double other) const {
    return (pick == Pick::most && count > other) || (pick == Pick::fewest && count < other);
  }
};

constexpr Choice choices[] = {
    {"free lock, p50", nullptr, scenario::latency, "", Pick::only, figure::p50, "us", Better::lower},
    {"free lock, p99", nullptr, scenario::latency, "", Pick::only, figure::p99, "us", Better::lower},
    {"throughput, ", "caller", scenario::throughput, parameter::callers, Pick::most, figure::throughput, "1/s",
     Better::higher},
    {"hand-off, ", "waiter", scenario::contention, parameter::waiters, Pick::fewest, figure::p50, "us", Better::lower},
    {"hand-off, ", "waiter", scenario::contention, parameter::waiters, Pick::most, figure::p50, "us", Better::lower},
    {"operations, a hand-off", nullptr, scenario::contention, parameter::waiters, Pick::most, figure::operations, "",
     Better::lower},
    {"fairness, ", "waiter", scenario::contention, parameter::waiters, Pick::most, figure::fairness, "", Better::higher,
     false},
    {"recovery, p50", nullptr, scenario::recovery, "", Pick::only, figure::p50, "us", Better::lower},
};

// Marks the best value of the last column, and those that look equal.
void mark_best(Table& table) {
  const bool lower = table.columns.back().better == Better::lower;
  const Cell* best = nullptr;
  for (const Table::Row& row : table.rows) {
    const Cell& each = row.cells.back();
    if (!each.rival) continue;  // it may have no value
    const bool beaten = best != nullptr && (lower ? *each.value >= *best->value : *each.value <= *best->value);
    if (!beaten) best = &each;
  }
  if (best == nullptr) return;
  const std::string text = best->text;
  for (Table::Row& row : table.rows) row.cells.back().best = row.cells.back().rival && row.cells.back().text == text;
}

void add_choice(Table& table, const Report& report, const Choice& choice) {
  const bool any_shared = std::any_of(report.services.begin(), report.services.end(), between_machines);
  std::map<std::string, Counted> figures;
  std::optional<double> usual;  // the count that most services have
  for (const std::string& each : report.labels()) {
    const auto figure = choice.of(report, each);
    if (!figure) continue;
    figures.emplace(each, *figure);
    if (!usual || choice.picks(figure->count, *usual)) usual = figure->count;
  }
  if (!usual) return;
  const std::string name = choice.noun == nullptr ? choice.name : choice.name + count_text(*usual, choice.noun);
  if (!table.columns.empty() && table.columns.back().name == name) return;  // the fewest are the most
  add_column(table, report, {name, choice.better, choice.fits_terminal}, [&](const std::string& label) {
    const auto figure = figures.find(label);
    if (figure == figures.end()) return Cell{};
    const auto [count, value] = figure->second;
    const ServiceInfo* service = report.service(label);
    const bool is_rival =
        service != nullptr && (any_shared ? between_machines(*service) : service->backend != "memory");
    return Cell{.text = quantity_text(value, choice.unit) + (count == *usual ? "" : fmt::format(" @{:.0f}", count)),
                .value = value,
                .rival = is_rival && count == *usual};
  });
  mark_best(table);
}

// A column of ratios: a figure of dlock's measurement, divided by that of the lock by hand.
struct RatioColumn {
  std::string name;
  Better better;
  const char* figure;
  const char* scenario;
  Parameters dlock;
  Parameters by_hand;
  bool as_ratio = true;
};

std::vector<RatioColumn> ratio_columns(const Report& report) {
  std::set<Parameters> latencies;  // of an open loop, or without parameters
  std::set<double> callers;
  std::set<double> outstanding;
  for (const auto& [scenario, service, who, parameters, figures, cdf] : report.measurements) {
    if (scenario == scenario::latency && !parameters.contains(parameter::round_trip_ms)) latencies.insert(parameters);
    if (scenario != scenario::throughput || parameters.size() != 1) continue;
    if (parameters.contains(parameter::callers)) callers.insert(parameters.begin()->second);
    if (parameters.contains(parameter::outstanding)) outstanding.insert(parameters.begin()->second);
  }
  std::vector<RatioColumn> result;
  result.reserve(latencies.size() + callers.size() + 2 * outstanding.size());
  for (const Parameters& each : latencies) {
    result.push_back({name_of(scenario::latency, each), Better::lower, figure::p50, scenario::latency, each, each});
  }
  for (const double each : callers) {
    const Parameters so_many{{parameter::callers, each}};
    result.push_back(
        {count_text(each, "caller"), Better::higher, figure::throughput, scenario::throughput, so_many, so_many});
  }
  for (const double each : outstanding) {
    const std::string name = count_text(each, "") + " async.";
    const Parameters calls{{parameter::outstanding, each}};
    const Parameters by_hand{{parameter::callers, each}};
    result.push_back({name, Better::higher, figure::throughput, scenario::throughput, calls, by_hand});
    result.push_back({name + ", CPU", Better::lower, figure::client_cpu, scenario::throughput, calls, by_hand, false});
  }
  return result;
}

struct Budget {
  std::string_view backend;
  std::string_view strategy;  // empty: each
  std::string_view column;
  double limit;
};

// docs/performance.md lists the same budgets.
constexpr std::array budgets = {
    Budget{"redis", "", "latency", 0.85},
    Budget{"redis", "", "8 callers", 1.0},
    Budget{"redis", "", "64 callers", 1.5},
    Budget{"redis", "", "256 callers", 1.7},
    Budget{"redis", "", "64 async.", 1.8},
    Budget{"redis", "", "64 async., CPU", 7},
    Budget{"postgresql", "table", "latency", 1.2},
    Budget{"postgresql", "table", "8 callers", 1.0},
    Budget{"postgresql", "table", "64 callers", 2.4},
    Budget{"mysql", "table", "latency", 1.1},
    Budget{"zookeeper", "sequential", "latency", 0.8},
    Budget{"zookeeper", "sequential", "64 callers", 3.0},
    Budget{"etcd", "", "latency", 1.2},
    Budget{"etcd", "", "64 callers", 2.0},
};

std::optional<double> budget_of(const ServiceInfo* service, std::string_view column) {
  if (service == nullptr) return std::nullopt;
  const auto* const found = std::find_if(budgets.begin(), budgets.end(), [&](const Budget& each) {
    return each.backend == service->backend && each.column == column &&
           (each.strategy.empty() || each.strategy == service->strategy);
  });
  return found == budgets.end() ? std::nullopt : std::optional(found->limit);
}

// The median of the ratios of each repeat.
double median_of_ratios(const Figure& mine, const Figure& by_hand) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(mine.repeats.size(), by_hand.repeats.size()); ++i) {
    const double ratio = by_hand.repeats[i] > 0 ? mine.repeats[i] / by_hand.repeats[i] : NAN;
    if (std::isfinite(ratio)) ratios.push_back(ratio);
  }
  return median(std::move(ratios));
}

std::string ratio_text(double value, const std::string& unit) {
  return unit.empty() ? fmt::format("{:.2f}", value) : quantity_text(value, unit);
}

Cell compared(const Report& report, const RatioColumn& column, const std::string& service) {
  const Measurement* dlock = report.find(column.scenario, service, Who::dlock, column.dlock);
  const Measurement* by_hand = report.find(column.scenario, service, Who::by_hand, column.by_hand);
  const Figure* mine = dlock == nullptr ? nullptr : dlock->figure(column.figure);
  const Figure* floor = by_hand == nullptr ? nullptr : by_hand->figure(column.figure);
  if (mine == nullptr || by_hand == nullptr || (floor == nullptr && column.as_ratio)) return {};
  const double value = column.as_ratio ? median_of_ratios(*mine, *floor) : mine->median();
  if (!(value > 0)) return {};
  const std::string unit = column.as_ratio ? "" : mine->unit;
  Cell cell{.text = ratio_text(value, unit), .value = value, .unit = unit};
  cell.budget = budget_of(report.service(service), column.name);
  if (!cell.budget) return cell;
  const bool lower = column.better == Better::lower;
  cell.note = (lower ? "<= " : ">= ") + ratio_text(*cell.budget, unit);
  // Compares the value as shown: "1.35, at most 1.35: missed" would make no sense.
  constexpr double half_a_digit = 0.005;
  cell.missed = lower ? value >= *cell.budget + half_a_digit : value < *cell.budget - half_a_digit;
  return cell;
}

}  // namespace

Table overview_table(const Report& report) {
  Table table;
  for (const Choice& each : choices) add_choice(table, report, each);
  if (table.columns.empty()) return table;
  const auto add_lost = [&](const char* name, std::string ServiceInfo::*lost) {
    add_column(table, report, {name, Better::neither, false, true}, [&](const std::string& label) {
      const ServiceInfo* service = report.service(label);
      if (service == nullptr) return Cell{};
      if (!between_machines(*service)) return Cell{.text = "no server"};
      return Cell{.text = (service->*lost).empty() ? "not known" : service->*lost};
    });
  };
  add_lost("lost, in a crash", &ServiceInfo::crash);
  add_lost("lost, in a failover", &ServiceInfo::failover);
  return table;
}

Table sharing_table(const Report& report) {
  Table table;
  const auto add = [&](const std::string& name, const Measurement& example, const char* figure) {
    for (const Table::Column& each : table.columns) {
      if (each.name == name) return;
    }
    add_column(table, report, {name}, [&](const std::string& label) {
      const Measurement* measurement = report.find(example.scenario, label, Who::dlock, example.parameters);
      const auto value = median_of(measurement, figure);
      if (!value) return Cell{};
      return Cell{.text = quantity_text(*value, measurement->figure(figure)->unit), .value = value};
    });
  };
  for (const Measurement& each : report.measurements) {
    const std::string callers = ", " + count_text(each.parameter(parameter::callers).value_or(0), "caller");
    if (const auto reads = each.parameter(parameter::reads)) {
      add(round_text(*reads, "") + " % reads" + callers, each, figure::throughput);
    } else if (const auto permits = each.parameter(parameter::permits)) {
      add(count_text(*permits, "permit") + callers, each, figure::throughput);
    } else if (const auto readers = each.parameter(parameter::readers)) {
      add("writer p50, " + count_text(*readers, "reader"), each, figure::p50);
      add("writer p99, " + count_text(*readers, "reader"), each, figure::p99);
    }
  }
  return without_empty_rows(std::move(table));
}

Table ratios_table(const Report& report) {
  Table table;
  for (const RatioColumn& each : ratio_columns(report)) {
    add_column(table, report, {each.name, each.better},
               [&](const std::string& service) { return compared(report, each, service); });
  }
  return without_empty_rows(std::move(table));
}

}  // namespace dlock::bench
