// The tables of dlock's schema, and the SQL that makes, checks and changes them. No I/O.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/common/sql/schema.hpp"
#include "backends/common/sql/text.hpp"
#include "backends/postgres/options.hpp"
#include "backends/postgres/sql/common.hpp"

namespace dlock::postgres {

// The version of the layout, in the table "meta". New tables, and new columns with a default, need no new version:
// older clients ignore them, so a fleet can be upgraded client by client.
inline constexpr int schema_version = 1;

// A table of the layout.
struct TableDefinition {
  std::string_view name;
  std::string_view columns;  // their names in order, separated by commas
  std::string_view body;     // their declarations, without "name"; a template, see fill()
  bool locks = true;         // false: the table describes the schema
  bool since_first = true;   // false: a schema of the first dlock lacks it, and can be used for plain locks
};

[[nodiscard]] std::span<const TableDefinition> layout();

// A change of the schema is a transaction, to be sent as one query: BEGIN, a lock_timeout, a lock that excludes other
// changes, then the changes and COMMIT. 55P03: another client keeps the lock.
inline constexpr int first_change = 3;  // the command behind the lock

// Makes missing tables and, with_schema, the schema; needs the right to create even if nothing is missing. 42P06,
// 42P07, 42710 and 23505: a client that does not take the lock was faster.
[[nodiscard]] std::vector<std::string> creation(std::string_view schema, Durability durability, bool with_schema);
// Writes the version, unless there is one.
[[nodiscard]] std::vector<std::string> recording(std::string_view schema);

struct SchemaStatements {
  // 3F000 or 42P01: there is no such schema.
  Statement version;
  // $1 schema. One row: whether the schema exists, this role may use it, may create tables in it, and may create
  // schemas in this database.
  Statement rights;
  // $1 schema. A row for each table of the layout that exists: name, columns in order separated by commas, persistence
  // ('p' or 'u'), whether this role may select, insert, update; owner, whether the owner is trusted, and additions that
  // run when the table is used (triggers, rules, ...), in words.
  Statement tables;
};

[[nodiscard]] SchemaStatements schema_statements(std::string_view schema);

// An array of all tables, for {names} in statements.
[[nodiscard]] std::string names_of_tables();

// Existing tables stay logged or unlogged, whatever the durability. In schema.cpp.
[[nodiscard]] std::unique_ptr<SchemaSteps> schema_steps(const std::string& schema, Durability durability);

// The rights that a role needs, in SQL.
[[nodiscard]] std::string needed_grants(std::string_view schema);
// The right that it also needs to forget names.
[[nodiscard]] std::string grant_to_forget(std::string_view schema);

}  // namespace dlock::postgres
