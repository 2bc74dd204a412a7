#include <string>
#include <vector>

#include <fmt/core.h>

#include "bench/report/overview.hpp"
#include "bench/report/ratios.hpp"
#include "bench/report/report.hpp"
#include "bench/report/text_table.hpp"
#include "bench/report/units.hpp"

namespace dlock::bench {

namespace {

std::string column_of(double count, const std::string& noun) {
  return count == 0 ? noun + "s" : count_text(count, noun);
}

std::string figures_text(const Report& report) {
  const Overview overview = overview_of(report);
  if (overview.rows.empty()) return "Nothing was measured.\n";
  TextTable table;
  table.add({"", "acquire", "+ release", "throughput", "hand-off", "hand-off", "operations", "recovery"});
  table.add({"service", "p50", "p99", column_of(overview.callers, "caller"), column_of(overview.few, "waiter"),
             column_of(overview.many, "waiter"), "a hand-off", "p50"});
  for (const OverviewRow& row : overview.rows) {
    table.add({printable(row.service), quantity_text(row.p50, "us"), quantity_text(row.p99, "us"),
               counted_text(row.throughput, "1/s", overview.callers),
               counted_text(row.hand_off_few, "us", overview.few), counted_text(row.hand_off_many, "us", overview.many),
               counted_text(row.operations, "", overview.many), quantity_text(row.recovery, "us")});
  }
  return table.text();
}

// All as long as those with a budget, so that the ratios stand below each other.
std::string cell_text(const std::optional<Ratio>& cell) {
  const std::string value = cell ? fmt::format("{:.2f}", cell->value) : not_measured;
  const std::string budget = cell && cell->budget ? budget_text(*cell->budget) : "";
  return fmt::format("{} {} {:<7}", value, cell && cell->missed() ? "!" : " ", budget);
}

std::string ratios_text(const Report& report) {
  const Ratios ratios = ratios_of(report);
  if (ratios.rows.empty()) return {};
  TextTable table;
  std::vector<std::string> head = {"ratio to the floor"};
  head.insert(head.end(), ratios.columns.begin(), ratios.columns.end());
  table.add(std::move(head));
  for (const Ratios::Row& row : ratios.rows) {
    std::vector<std::string> line = {printable(row.service)};
    for (const auto& cell : row.cells) line.push_back(cell_text(cell));
    table.add(std::move(line));
  }
  std::string text = "\n" + table.text();
  if (ratios.any_missed()) text += "! misses the performance budget\n";
  return text;
}

std::string problems_text(const Report& report) {
  std::string text;
  for (const Problem& each : report.problems) {
    const std::string what = each.scenario.empty() ? each.service : each.service + ", " + each.scenario;
    text += fmt::format("  {}: {}\n", printable(what), printable(each.message));
  }
  return text.empty() ? text : "\nNot measured:\n" + text;
}

}  // namespace

std::string to_text(const Report& report) {
  std::string text = figures_text(report) + ratios_text(report) + problems_text(report);
  if (report.quick) text += "\nA quick run: few and short repeats.\n";
  if (!report.complete) text += "\nInterrupted: not everything was measured.\n";
  return text;
}

}  // namespace dlock::bench
