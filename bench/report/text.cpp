#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "bench/report/figures.hpp"
#include "bench/report/overview.hpp"
#include "bench/report/ratios.hpp"
#include "bench/report/report.hpp"
#include "bench/report/selection.hpp"
#include "bench/report/sharing.hpp"
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

// Services that have no such locks are left out.
std::string sharing_text(const Report& report) {
  const std::vector<SharingColumn> columns = sharing_columns(report);
  if (columns.empty()) return {};
  TextTable table;
  std::vector<std::string> what = {"sharing"};
  std::vector<std::string> who = {"service"};
  for (const SharingColumn& each : columns) {
    what.push_back(each.what);
    who.push_back(each.who);
  }
  table.add(std::move(what));
  table.add(std::move(who));
  for (const std::string& service : labels_of(report)) {
    if (only_one_of(report, scenario::sharing, service) == nullptr) continue;
    std::vector<std::string> line = {printable(service)};
    for (const SharingColumn& each : columns) {
      line.push_back(quantity_text(median_of(measurement_of(report, service, each), each.figure), each.unit));
    }
    table.add(std::move(line));
  }
  return "\n" + table.text();
}

std::vector<std::string> line_of(std::string label, const Ratios::Row& row,
                                 std::string (*text)(const std::optional<Ratio>& cell)) {
  std::vector<std::string> line = {std::move(label)};
  for (const auto& cell : row.cells) line.push_back(text(cell));
  return line;
}

// With room for the mark, so that all figures stand below each other.
std::string value_text(const std::optional<Ratio>& cell) {
  if (!cell) return std::string(not_measured) + " ";
  return printable(ratio_text(*cell)) + (cell->missed() ? "!" : " ");
}

std::string limit_text(const std::optional<Ratio>& cell) {
  return cell && cell->budget ? budget_text(*cell->budget) + " " : "";
}

bool has_budget(const std::optional<Ratio>& cell) {
  return cell && cell->budget;
}

std::string ratios_text(const Report& report, Who floor, const std::string& title) {
  const Ratios ratios = ratios_of(report, floor);
  if (ratios.rows.empty()) return {};
  TextTable table;
  std::vector<std::string> head = {title};
  for (const std::string& each : ratios.columns) head.push_back(each + " ");
  table.add(std::move(head));
  for (const Ratios::Row& row : ratios.rows) {
    table.add(line_of(printable(row.service), row, value_text));
    if (std::any_of(row.cells.begin(), row.cells.end(), has_budget)) table.add(line_of("  budget", row, limit_text));
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
  std::string text = figures_text(report) + sharing_text(report) +
                     ratios_text(report, Who::by_hand, "ratio to by hand") +
                     ratios_text(report, Who::same_requests, "to same requests") + problems_text(report);
  if (report.quick) text += "\nA quick run: few and short repeats.\n";
  if (!report.complete) text += "\nInterrupted: not everything was measured.\n";
  return plain_units(std::move(text));
}

}  // namespace dlock::bench
