#include "backends/postgres/sql/sql_template.hpp"

#include <algorithm>
#include <array>

#include "backends/postgres/schema/layout.hpp"
#include "backends/postgres/sql/identifier.hpp"

namespace dlock::postgres {

namespace {

constexpr std::string_view letters_of_operators = "+-*/<>=~!@#%^&|`?";
constexpr std::array<std::string_view, 13> types = {"text",     "name",         "int2",     "int4",        "int8",
                                                    "bool",     "float8",       "interval", "timestamptz", "point",
                                                    "regclass", "regnamespace", "jsonb"};

// Words that need no filling.
std::optional<std::string> of_the_system(std::string_view word) {
  const bool is_operator = !word.empty() && word.find_first_not_of(letters_of_operators) == std::string_view::npos;
  if (is_operator) return "OPERATOR(pg_catalog." + std::string(word) + ")";
  if (std::find(types.begin(), types.end(), word) != types.end()) return "pg_catalog." + std::string(word);
  if (word == "C") return "pg_catalog.\"C\"";
  return std::nullopt;
}

}  // namespace

std::string fill(std::string_view text, const Fillings& fillings) {
  return sql::fill(text, fillings, of_the_system);
}

namespace {

std::string commit_of(std::optional<Durability> durability) {
  if (!durability) return {};
  if (*durability != Durability::sync) return ", pg_catalog.set_config('synchronous_commit', 'off', true)";
  // Its other values are about standbys.
  return ", CASE WHEN pg_catalog.current_setting('synchronous_commit') OPERATOR(pg_catalog.=) 'off' "
         "THEN pg_catalog.set_config('synchronous_commit', 'on', true) END";
}

}  // namespace

Fillings common_fillings(std::string_view schema, std::optional<Durability> durability) {
  Fillings fillings = {
      {"now", "pg_catalog.clock_timestamp()"},
      {"us", fill("(extract(epoch FROM pg_catalog.clock_timestamp()) {*} 1000000)::{int8}", {})},
      {"old", fill("{<=} ((extract(epoch FROM pg_catalog.clock_timestamp()) {*} 1000000)::{int8} {-} $2::{int8})", {})},
      {"ms", "pg_catalog.interval '1 millisecond'"},
      // A statement that waits for another transaction delays renewals of other locks behind it.
      {"brief", "pg_catalog.set_config('lock_timeout', '250', true) IS NOT NULL"},
      // The prepared transaction that has the lock p; NULL if a session has it. All locks of a transaction, including
      // that on its own number, have its virtual number.
      {"gid", fill("(SELECT x.gid FROM pg_catalog.pg_locks AS o JOIN pg_catalog.pg_prepared_xacts AS x "
                   "ON x.transaction {=} o.transactionid "
                   "WHERE p.pid IS NULL AND o.pid IS NULL AND o.virtualtransaction {=} p.virtualtransaction LIMIT 1)",
                   {})},
      {"commit", commit_of(durability)},
  };
  for (const TableDefinition& table : layout()) fillings.emplace_back(table.name, qualified(schema, table.name));
  return fillings;
}

}  // namespace dlock::postgres
