#include "backends/mysql/sql/layout.hpp"

#include "backends/mysql/sql/text.hpp"

namespace dlock::mysql {

namespace {

// Names are bytes, so that neither case nor accents nor blanks at the end are ignored. Owners are, because the server
// finds no text by its bytes in an index.
const Fillings& columns() {
  static const Fillings fillings = {
      {"name", "name VARBINARY(512) NOT NULL"},
      {"owner", "owner VARBINARY(32)"},
      {"holder", "holder VARCHAR(4096) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT ''"},
      {"token", "token BIGINT NOT NULL DEFAULT 0"},
      {"session", "session BIGINT UNSIGNED NOT NULL DEFAULT 0"},
  };
  return fillings;
}

constexpr std::string_view lease_columns = "name,owner,holder,token,expires_at,session";
constexpr std::string_view lease_body =
    "{name} PRIMARY KEY, {owner} NULL, {holder}, {token}, expires_at DATETIME(6) NOT NULL, {session}";

constexpr std::string_view optimistic_columns = "name,owner,holder,version,token,lease_ms,changed_at,session";
constexpr std::string_view optimistic_body =
    "{name} PRIMARY KEY, {owner} NULL, {holder}, version BIGINT NOT NULL, {token}, lease_ms BIGINT NOT NULL, "
    "changed_at DATETIME(6) NOT NULL, {session}";

constexpr std::string_view sharing_columns = "name,token,permits,writer,marked_until";
constexpr std::string_view sharing_body =
    "{name} PRIMARY KEY, {token}, permits BIGINT NOT NULL DEFAULT 0, "
    "writer VARBINARY(32) NULL, "
    "marked_until DATETIME(6) NOT NULL DEFAULT '1970-01-01'";

// A slot for each holder, which the next one reuses: rows that are deleted stay in the way for a while.
constexpr std::string_view slot_columns = "name,slot,owner,holder,weight,token,expires_at";
constexpr std::string_view slot_body =
    "{name}, slot BIGINT NOT NULL, {owner} NULL, {holder}, weight BIGINT NOT NULL, {token}, "
    "expires_at DATETIME(6) NOT NULL, PRIMARY KEY (name, slot)";

constexpr std::string_view fence_columns = "name,holder,token,session";
constexpr std::string_view fence_body = "{name} PRIMARY KEY, {holder}, {token}, {session}";

}  // namespace

const std::vector<TableDefinition>& layout() {
  static const std::vector<TableDefinition> tables = {
      {"meta", "singleton,version", "singleton TINYINT NOT NULL PRIMARY KEY DEFAULT 1, version INT NOT NULL"},
      {"lease", lease_columns, lease_body},
      {"lease_elect", lease_columns, lease_body},
      {"optimistic", optimistic_columns, optimistic_body},
      {"optimistic_elect", optimistic_columns, optimistic_body},
      {"lease_rw", sharing_columns, sharing_body},
      {"lease_rw_slot", slot_columns, slot_body},
      {"lease_sem", sharing_columns, sharing_body},
      {"lease_sem_slot", slot_columns, slot_body},
      {"row_lock", fence_columns, fence_body},
      {"fence", fence_columns, fence_body},
      {"fence_elect", fence_columns, fence_body},
  };
  return tables;
}

std::vector<std::string> creation(std::string_view schema, bool with_schema) {
  std::vector<std::string> queries;
  if (with_schema) queries.push_back("CREATE DATABASE IF NOT EXISTS " + quoted(schema));
  for (const TableDefinition& table : layout()) {
    queries.push_back("CREATE TABLE IF NOT EXISTS " + qualified(schema, table.name) + " (" +
                      fill(table.body, columns()) + ") ENGINE=InnoDB ROW_FORMAT=DYNAMIC");
  }
  queries.push_back("INSERT IGNORE INTO " + qualified(schema, "meta") + " (singleton, version) VALUES (1, " +
                    std::to_string(schema_version) + ")");
  return queries;
}

SchemaStatements schema_statements(std::string_view schema) {
  return {
      .version = {"SELECT version FROM " + qualified(schema, "meta"), "version"},
      .tables = {fill(R"sql(
        SELECT t.table_name, (SELECT GROUP_CONCAT(c.column_name ORDER BY c.ordinal_position)
            FROM information_schema.columns AS c
            WHERE c.table_schema = t.table_schema AND c.table_name = t.table_name), t.engine
        FROM information_schema.tables AS t WHERE t.table_schema = ? ORDER BY t.table_name)sql"),
                 "tables"},
  };
}

namespace {

// In a grant on all tables of a database, _ and % of its name stand for other characters, too.
std::string all_tables(std::string_view schema) {
  std::string escaped;
  for (const char c : schema) {
    if (c == '_' || c == '%' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return quoted(escaped) + ".*";
}

}  // namespace

std::string needed_grants(std::string_view schema) {
  return "GRANT SELECT, INSERT, UPDATE ON " + all_tables(schema) + " TO <user>";
}

std::string grant_to_forget(std::string_view schema) {
  return "GRANT DELETE ON " + all_tables(schema) + " TO <user>";
}

std::string grant_to_break(bool mariadb) {
  return std::string("GRANT ") + (mariadb ? "CONNECTION ADMIN" : "CONNECTION_ADMIN") +
         " ON *.* TO <user>; without PROCESS, too, the user sees its own sessions alone";
}

}  // namespace dlock::mysql
