// The tables of dlock's schema, and the SQL that makes, checks and changes them. No I/O.
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
  std::string_view columns;     // their names in order, separated by commas
  std::string_view body;        // how they are declared, without "name"; a template, see fill()
  bool locks = true;            // false: only says what the schema is
  std::string_view added = {};  // one more column, an array of texts, that tables of the first dlock lack
  bool since_first = true;  // false: what an older dlock has made lacks it, and is good for plain locks all the same
};

// Where a table of plain locks is "lease", that of elections is "lease_elect".
[[nodiscard]] std::string table_of(std::string_view table, LockKind kind);

[[nodiscard]] std::span<const TableDefinition> layout();

// Changes to the schema: each is a transaction, to be sent as one query. BEGIN, a limit for waiting and the lock of all
// that change the schema come first, and COMMIT comes last. 55P03: another client has the lock for long.
inline constexpr int first_change = 3;  // the command behind the lock

// Makes what is missing, and needs the right to create even where nothing is. A role that may not create schemas, in a
// schema that was made for it, leaves out the statement for the schema. 42P06, 42P07, 42710 and 23505: a client that
// does not take the lock was faster.
[[nodiscard]] std::vector<std::string> creation(std::string_view schema, Durability durability, bool with_schema);
// Writes the version, unless there is one.
[[nodiscard]] std::vector<std::string> recording(std::string_view schema);
// Adds to a table what an older dlock has not given it. Everybody who uses the table waits meanwhile, so the
// transaction does not wait for long itself: 55P03.
[[nodiscard]] std::vector<std::string> extension(std::string_view schema, const TableDefinition& table);

struct SchemaStatements {
  // The version in "meta". 3F000 or 42P01: there is no such schema.
  Statement version;
  // $1 schema. One row: whether there is such a schema, whether we may use it, whether we may create in it, whether we
  // may create schemas in this database.
  Statement rights;
  // $1 schema. A row for each of our tables that is there: name, columns in order separated by commas, persistence ('p'
  // or 'u'), whether we may select, insert, update; owner, whether the owner is to be trusted, what there is in words
  // that runs when the table is used, and is not dlock's (triggers, rules, ...), whether we may change the table.
  Statement tables;
};

[[nodiscard]] SchemaStatements schema_statements(std::string_view schema);

// The names of all tables, for {names} in other statements about them.
[[nodiscard]] std::string names_of_tables();

// The rights that a role needs, in the words of SQL: "GRANT USAGE ON SCHEMA ...; GRANT SELECT, INSERT, UPDATE ON ...".
[[nodiscard]] std::string needed_grants(std::string_view schema);
// The right that it needs besides to forget names.
[[nodiscard]] std::string grant_to_forget(std::string_view schema);

}  // namespace dlock::postgres
