// The tables that the terminal and the page show, and the ratios that the JSON file has, too.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/report/result.hpp"
#include "bench/report/units.hpp"

namespace dlock::bench {

struct Cell {
  std::string text = not_measured;
  std::optional<double> value = {};
  std::string unit = {};  // of the value
  bool rival = false;     // a service that several machines can share, with as many callers or waiters as the others
  bool best = false;      // of the rivals in its column, or looks the same
  std::string note = {};  // "<= 0.85"
  std::optional<double> budget = {};
  bool missed = false;  // the budget
};

struct Table {
  struct Column {
    std::string name;  // "hand-off, 2 waiters"
    Better better = Better::neither;
    bool fits_terminal = true;  // false: only the page has room for it
    bool words = false;         // not numbers
  };
  struct Row {
    std::string name;
    std::vector<Cell> cells;
  };
  std::vector<Column> columns;
  std::vector<Row> rows;
};

// The figures that one decides by, and what each service loses: a row for each service, without columns that nothing
// was measured for. Without services that several machines can share, all but those of one process are rivals.
[[nodiscard]] Table overview_table(const Report& report);

// Locks that several hold at the same time, of services that have them.
[[nodiscard]] Table sharing_table(const Report& report);

// dlock's figures divided by those of the lock by hand, with the performance budget, of services that have both.
// Latency, and throughput for each number of callers. Also asynchronous calls, where so many callers by hand were
// measured, and the processor time of a pair of them, which is no ratio.
[[nodiscard]] Table ratios_table(const Report& report);

}  // namespace dlock::bench
