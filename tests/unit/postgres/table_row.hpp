// What SchemaStatements::tables answers about a table that is as it should be.
#pragma once

#include <string>

#include "backends/postgres/schema/layout.hpp"

namespace dlock::postgres {

inline Rows::Row table_row(const TableDefinition& table) {
  std::string columns(table.columns);
  if (!table.added.empty()) columns += "," + std::string(table.added);
  return {std::string(table.name), columns, "p", "t", "t", "t", "me", "t", "", "t"};
}

}  // namespace dlock::postgres
