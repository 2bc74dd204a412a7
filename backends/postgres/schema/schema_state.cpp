#include "backends/postgres/schema/schema_state.hpp"

#include <algorithm>

#include "backends/postgres/sql/identifier.hpp"
#include "util/names.hpp"

namespace dlock::postgres {

namespace {

std::string named(std::string_view schema) {
  return "schema " + quote_identifier(schema);
}

std::string quoted_list(const std::vector<std::string_view>& names) {
  std::string out;
  for (const std::string_view name : names) out += (out.empty() ? "" : ", ") + quote_identifier(name);
  return out;
}

bool has_column(const TableState& table, std::string_view column) {
  return ("," + table.columns + ",").find("," + std::string(column) + ",") != std::string::npos;
}

// A newer dlock may have added columns.
bool has_columns(const TableState& table, const TableDefinition& definition) {
  std::string_view rest = definition.columns;
  while (!rest.empty()) {
    const std::string_view column = rest.substr(0, rest.find(','));
    if (!has_column(table, column)) return false;
    rest.remove_prefix(std::min(column.size() + 1, rest.size()));
  }
  return true;
}

Failure not_allowed(std::string_view schema, const std::string& what) {
  return {errc::access_denied, what + ": run \"dlock init\" with a role that may, and then " + needed_grants(schema)};
}

}  // namespace

const TableState* SchemaState::table(std::string_view name) const noexcept {
  const auto found =
      std::find_if(tables.begin(), tables.end(), [&](const TableState& table) { return table.name == name; });
  return found == tables.end() ? nullptr : &*found;
}

std::vector<std::string_view> SchemaState::missing() const {
  std::vector<std::string_view> names;
  for (const TableDefinition& definition : layout()) {
    if (table(definition.name) == nullptr) names.push_back(definition.name);
  }
  return names;
}

SchemaState read_schema_state(const std::string& schema, const Rows& rights, const Rows& tables) {
  SchemaState state{.schema = schema,
                    .exists = rights.flag(0, 0),
                    .may_use = rights.flag(0, 1),
                    .may_create = rights.flag(0, 2),
                    .may_create_schemas = rights.flag(0, 3)};
  const auto is_ours = [&](std::size_t row) {  // no other names were asked for
    return std::ranges::any_of(layout(), [&](const auto& ours) { return ours.name == tables.text(row, 0); });
  };
  for (std::size_t i = 0; i < tables.size(); ++i) {
    if (!is_ours(i)) continue;
    state.tables.push_back({.name = tables.text(i, 0),
                            .columns = tables.text(i, 1),
                            .unlogged = tables.text(i, 2) == "u",
                            .may_select = tables.flag(i, 3),
                            .may_insert = tables.flag(i, 4),
                            .may_update = tables.flag(i, 5),
                            .owner = tables.text(i, 6),
                            .trusted = tables.flag(i, 7),
                            .planted = tables.text(i, 8)});
  }
  return state;
}

std::optional<Failure> problem_with_version(std::string_view schema, std::int64_t version) {
  if (version == schema_version) return std::nullopt;
  return Failure{errc::unsupported, named(schema) + " has version " + std::to_string(version) +
                                        " of dlock's tables, and this is a dlock for version " +
                                        std::to_string(schema_version) + ": use a newer dlock, or another schema"};
}

std::optional<Failure> SchemaState::problem_with_tables() const {
  for (const TableDefinition& definition : layout()) {
    const TableState* const present = table(definition.name);
    if (present == nullptr || has_columns(*present, definition)) continue;
    return Failure{errc::invalid_argument,
                   "table " + qualified(schema, definition.name) + " is not dlock's: it has the columns " +
                       present->columns + " instead of " + std::string(definition.columns) + "; use another schema"};
  }
  return std::nullopt;
}

std::optional<Failure> SchemaState::problem_with_planted() const {
  for (const TableState& each : tables) {
    if (each.planted.empty()) continue;
    return Failure{
        errc::access_denied,
        "table " + qualified(schema, each.name) + " of role " + util::quoted(each.owner) +
            " has additions that are not dlock's and would run with the rights of every role that takes a lock: " +
            each.planted + "; drop them, or use another schema"};
  }
  return std::nullopt;
}

std::optional<Failure> SchemaState::problem_with_owners() const {
  for (const TableState& each : tables) {
    if (each.trusted) continue;
    return Failure{errc::access_denied,
                   "table " + qualified(schema, each.name) + " belongs to role " + util::quoted(each.owner) +
                       ", whose triggers would run with the rights of this role: use another schema, or, if that role "
                       "is meant to own dlock's tables, connect as a role with fewer rights"};
  }
  return std::nullopt;
}

std::optional<Failure> SchemaState::problem_with_rights() const {
  if (!exists) {
    if (may_create_schemas) return std::nullopt;
    return not_allowed(schema, named(schema) + " does not exist, and this role may not create schemas in the database");
  }
  if (!may_use) return not_allowed(schema, "this role may not use " + named(schema));
  const auto names = missing();
  if (names.empty() || may_create) return std::nullopt;
  return not_allowed(schema, named(schema) + " lacks the tables " + quoted_list(names) +
                                 ", and this role may not create tables in it");
}

std::vector<std::string> SchemaState::additions(Durability durability) const {
  std::vector<std::string> additions;
  if (!exists) additions.push_back(named(schema));
  for (const TableDefinition& definition : layout()) {
    if (table(definition.name) != nullptr) continue;
    const bool unlogged = definition.locks && durability == Durability::unlogged;
    additions.push_back((unlogged ? "unlogged table " : "table ") + qualified(schema, definition.name));
  }
  return additions;
}

}  // namespace dlock::postgres
