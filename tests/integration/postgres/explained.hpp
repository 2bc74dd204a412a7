// What EXPLAIN ANALYZE says.
#pragma once

#include <cstddef>
#include <regex>
#include <string>

#include "tests/support/postgres_connection.hpp"

namespace dlock::test {

// How many rows were looked at.
inline std::size_t rows_looked_at(const PostgresReply& plan) {
  static const std::regex in_node("actual rows=([0-9]+) loops=([0-9]+)|Rows Removed by [A-Za-z ]+: ([0-9]+)");
  std::size_t sum = 0;
  std::size_t loops = 1;  // of the node that the lines are about
  for (const auto& row : plan.rows) {
    std::smatch found;
    const std::string line = row.at(0).value();
    if (!std::regex_search(line, found, in_node)) continue;
    if (found[2].matched) loops = std::stoul(found[2]);
    sum += loops * std::stoul(found[found[3].matched ? 3 : 1]);
  }
  return sum;
}

}  // namespace dlock::test
