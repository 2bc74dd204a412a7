// The tables of the terminal and the page, and the ratios, which the JSON file has, too.
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
  bool best = false;      // of the rivals in its column, or looks equal
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

// The figures for choosing a service, and what each service loses: a row for each service, without empty columns. If no
// service can be shared by several machines, all but those within one process are rivals.
[[nodiscard]] Table overview_table(const Report& report);

// Locks with several holders, of services that have them.
[[nodiscard]] Table sharing_table(const Report& report);

// dlock's figures divided by those of the lock by hand, with the performance budget, of services that have both:
// latency, and throughput for each number of callers. Also asynchronous calls, if as many callers by hand were
// measured, and the processor time of a pair of them, which is no ratio.
[[nodiscard]] Table ratios_table(const Report& report);

}  // namespace dlock::bench
