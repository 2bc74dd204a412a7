// What SchemaStatements::tables answers about a table that is as it should be.
#pragma once

#include <string>

#include "backends/postgres/schema/layout.hpp"

namespace dlock::postgres {

inline Rows::Row table_row(const TableDefinition& table) {
  return {std::string(table.name), std::string(table.columns), "p", "t", "t", "t", "me", "t", ""};
}

}  // namespace dlock::postgres
