// The SQL that makes, checks and describes dlock's schema. No I/O.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/lock_kind.hpp>

#include "backends/postgres/options.hpp"
#include "backends/postgres/sql/connection.hpp"

namespace dlock::postgres {

// Of the layout; in the table "meta". New tables, and new columns with a default, are no new version: older clients
// pass them over, so that a fleet can be upgraded one by one.
inline constexpr int schema_version = 1;

// A table of the layout.
struct TableDefinition {
  std::string_view name;
  std::string_view columns;  // their names in order, separated by commas
  std::string_view body;     // how they are declared, without "name"; a template, see fill()
  bool locks = true;         // false: only says what the schema is
  // The last one and how it is declared, where the first dlock had none such: added to tables that exist.
  std::string_view added = {};
  std::string_view addition = {};
  bool since_first = true;  // false: what an older dlock has made lacks it, and is good for plain locks all the same
};

// Where a table of plain locks is "lease", that of elections is "lease_elect".
[[nodiscard]] std::string table_of(std::string_view table, LockKind kind);

[[nodiscard]] std::span<const TableDefinition> layout();

// How to create what is missing, one transaction, each a statement of its own and in this order: BEGIN first and COMMIT
// last. In between it is to be seen whose the tables are: the end, which says that they are ours, runs their triggers.
// Safe where several do it at once, and where all is there already (which takes the right to create all the
// same). A role that may not create schemas, in a schema that was made for it, leaves out the statement for the schema.
// 42P07, 42710 and 23505 mean that a client that does not take the lock in it was faster: again from the beginning.
[[nodiscard]] std::vector<std::string> creation(std::string_view schema, Durability durability, bool with_schema);
[[nodiscard]] std::vector<std::string> end_of_creation(std::string_view schema);
// Adds to a table what an older dlock has not given it: a transaction, in one query. Everybody who uses the table waits
// meanwhile, so it does not wait for long itself: 55P03.
[[nodiscard]] std::vector<std::string> extension(std::string_view schema, const TableDefinition& table);

struct SchemaStatements {
  // The version in "meta". 3F000 or 42P01: there is no such schema.
  Statement version;
  // $1 schema. One row: whether there is such a schema, whether we may use it, whether we may create in it, whether we
  // may create schemas in this database.
  Statement rights;
  // $1 schema. A row for each of our tables that is there: name, columns in order separated by commas, persistence ('p'
  // or 'u'), whether we may select, insert, update, delete; owner, whether the owner is to be trusted, what there is
  // in words that runs when the table is used, and is not dlock's (triggers, rules, ...), whether we may change the
  // table.
  Statement tables;
  // $1 schema. A row for each: name, live rows, dead rows, updates, HOT updates among them, bytes (with indexes).
  Statement health;
};

[[nodiscard]] SchemaStatements schema_statements(std::string_view schema);

// What a role needs, in the words of SQL: "GRANT USAGE ON SCHEMA ...; GRANT SELECT, INSERT, UPDATE ON ...".
[[nodiscard]] std::string needed_grants(std::string_view schema);
// And to forget names.
[[nodiscard]] std::string grant_to_forget(std::string_view schema);

}  // namespace dlock::postgres
