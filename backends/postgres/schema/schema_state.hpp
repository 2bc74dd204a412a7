// The state of dlock's schema in a database, and whether this client can work with it. No I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/error.hpp>

#include "backends/postgres/options.hpp"
#include "backends/postgres/schema/layout.hpp"
#include "backends/postgres/sql/common.hpp"

namespace dlock::postgres {

struct TableState {
  std::string name;
  std::string columns;  // in order, separated by commas
  bool unlogged = false;
  bool may_select = false;
  bool may_insert = false;
  bool may_update = false;
  std::string owner = {};
  bool trusted = true;       // this role trusts the owner
  std::string planted = {};  // additions that run when the table is used, in words
};

struct SchemaState {
  std::string schema;
  bool exists = false;
  bool may_use = false;
  bool may_create = false;          // tables in it
  bool may_create_schemas = false;  // in the database
  std::vector<TableState> tables = {};

  // nullptr: there is no such table.
  [[nodiscard]] const TableState* table(std::string_view name) const noexcept;
  // The tables of the layout that do not exist.
  [[nodiscard]] std::vector<std::string_view> missing() const;

  // A table has other columns; missing tables are no problem.
  [[nodiscard]] std::optional<Failure> problem_with_tables() const;
  // This role should not use a table.
  [[nodiscard]] std::optional<Failure> problem_with_planted() const;
  [[nodiscard]] std::optional<Failure> problem_with_owners() const;
  // This role cannot make the missing tables.
  [[nodiscard]] std::optional<Failure> problem_with_rights() const;

  // The changes that creation() would make, in words: schema "dlock", table "dlock"."lease".
  [[nodiscard]] std::vector<std::string> additions(Durability durability) const;
};

// From the answers to SchemaStatements::rights and ::tables.
[[nodiscard]] SchemaState read_schema_state(const std::string& schema, const Rows& rights, const Rows& tables);

[[nodiscard]] std::optional<Failure> problem_with_version(std::string_view schema, std::int64_t version);

}  // namespace dlock::postgres
