// The tables of dlock's database, and the SQL that makes them. No I/O.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/common/sql/connection.hpp"
#include "backends/common/sql/schema.hpp"

namespace dlock::mysql {

// The version of the layout, in the table "meta". New tables, and new columns with a default, need no new version.
inline constexpr int schema_version = 1;

// Each is a query of its own, because the server commits before and after it. Any number of clients may send them at
// once: the server makes each table once. They need the right to create even if nothing is missing.
[[nodiscard]] std::vector<std::string> creation(std::string_view schema, bool with_schema);

struct SchemaStatements {
  sql::Statement version;  // 1146 or 1049: there is no such table or database
  // ? schema. Rows of each table: its name, its columns in order separated by commas, its engine.
  sql::Statement tables;
};
[[nodiscard]] SchemaStatements schema_statements(std::string_view schema);

struct TableDefinition {
  std::string_view name;
  std::string_view columns;  // their names in order, separated by commas
  std::string_view body;     // their declarations; a template, see fill()
};
[[nodiscard]] const std::vector<TableDefinition>& layout();

// In schema.cpp.
[[nodiscard]] std::unique_ptr<sql::SchemaSteps> schema_steps(const std::string& schema);

// The rights that a user needs, in SQL.
[[nodiscard]] std::string needed_grants(std::string_view schema);
// The right that it also needs to forget names.
[[nodiscard]] std::string grant_to_forget(std::string_view schema);
// To break locks that live in sessions of other users.
[[nodiscard]] std::string grant_to_break(bool mariadb);

}  // namespace dlock::mysql
