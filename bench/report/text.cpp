#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "bench/report/report.hpp"
#include "bench/report/tables.hpp"
#include "bench/report/units.hpp"

namespace dlock::bench {

namespace {

using Line = std::vector<std::string>;

// The first column is aligned to the left, all others to the right.
std::string aligned(const std::vector<Line>& lines) {
  std::vector<std::size_t> widths;
  for (const Line& line : lines) {
    widths.resize(std::max(widths.size(), line.size()));
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string result;
  for (const Line& line : lines) {
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) {
      text += i == 0 ? fmt::format("{:<{}}", line[i], widths[i]) : fmt::format("  {:>{}}", line[i], widths[i]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    result += text + "\n";
  }
  return result;
}

// A name of a column is two lines: "hand-off, 2 waiters". Cells have room for a mark if one of them has a budget.
std::string table_text(const Table& table, const std::string& title) {
  if (table.rows.empty()) return {};
  const auto any_cell = [&](const auto& matches) {
    return std::any_of(table.rows.begin(), table.rows.end(),
                       [&](const Table::Row& row) { return std::any_of(row.cells.begin(), row.cells.end(), matches); });
  };
  const bool any_budget = any_cell([](const Cell& each) { return each.budget.has_value(); });
  const bool any_missed = any_cell([](const Cell& each) { return each.missed; });
  const std::string room = any_budget ? " " : "";
  std::vector<Line> lines = {{title}, {"service"}};
  bool two_lines = false;
  for (const auto& [name, better, fits_terminal, words] : table.columns) {
    if (!fits_terminal) continue;
    const auto comma = name.find(", ");
    lines[0].push_back(name.substr(0, comma) + room);
    lines[1].push_back(comma == std::string::npos ? "" : name.substr(comma + 2) + room);
    two_lines = two_lines || comma != std::string::npos;
  }
  if (!two_lines) lines.pop_back();
  for (const Table::Row& row : table.rows) {
    Line figures = {printable(row.name)};
    Line budgets = {"  budget"};
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      if (!table.columns[i].fits_terminal) continue;
      const Cell& cell = row.cells[i];
      figures.push_back(plain_units(printable(cell.text)) + (cell.missed ? "!" : room));
      budgets.push_back(cell.note.empty() ? "" : plain_units(cell.note) + " ");
    }
    const bool has_budget =
        std::any_of(row.cells.begin(), row.cells.end(), [](const Cell& each) { return !each.note.empty(); });
    lines.push_back(std::move(figures));
    if (has_budget) lines.push_back(std::move(budgets));
  }
  return aligned(lines) + (any_missed ? "! misses the performance budget\n" : "");
}

std::string problems_text(const Report& report) {
  std::string text;
  for (const Problem& each : report.problems) {
    const std::string what = each.scenario.empty() ? each.service : each.service + ", " + each.scenario;
    text += fmt::format("  {}: {}\n", printable(what), printable(each.message));
  }
  return text.empty() ? text : "Not measured:\n" + text;
}

}  // namespace

std::string to_text(const Report& report) {
  std::string text = table_text(overview_table(report), "");
  if (text.empty()) text = "Nothing was measured.\n";
  for (const std::string& each :
       {table_text(sharing_table(report), "sharing"), table_text(ratios_table(report), "ratio to by hand"),
        problems_text(report), std::string(report.quick ? "A quick run: few and short repeats.\n" : ""),
        std::string(report.complete ? "" : "Interrupted: not everything was measured.\n")}) {
    if (!each.empty()) text += "\n" + each;
  }
  return text;
}

}  // namespace dlock::bench
