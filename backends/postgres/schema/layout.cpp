#include "backends/postgres/schema/layout.hpp"

#include <array>

#include "backends/postgres/sql/identifier.hpp"
#include "backends/postgres/sql/sql_template.hpp"

namespace dlock::postgres {

namespace {

// Rows are updated in place (HOT) if their page has room and no index contains a column that changes: so half of each
// page stays free, and only the name has an index. The number of dead rows starts autovacuum, however large the table.
constexpr std::string_view storage =
    " WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, "
    "vacuum_truncate = off)";

// The first column in the table of a strategy. Compared byte by byte, whatever the database's collation is or becomes.
constexpr std::string_view name_column =
    "name {text} COLLATE {C} PRIMARY KEY CHECK (pg_catalog.octet_length(name) {>=} 1 "
    "AND pg_catalog.octet_length(name) {<=} 1024)";

constexpr std::string_view lease_columns = "name,owner,holder,token,expires_at,waiting_until";
constexpr std::string_view lease_body =
    "owner {text}, holder {text} NOT NULL, token {int8} NOT NULL, expires_at {timestamptz} NOT NULL, "
    "waiting_until {timestamptz} NOT NULL DEFAULT '-infinity'";

constexpr std::string_view optimistic_columns = "name,owner,holder,version,token,lease_ms,waiting_until";
constexpr std::string_view optimistic_body =
    "owner {text}, holder {text} NOT NULL, version {int8} NOT NULL, token {int8} NOT NULL, lease_ms {int8} NOT NULL, "
    "waiting_until {timestamptz} NOT NULL DEFAULT '-infinity'";

constexpr std::string_view fence_columns = "name,key,space,pid,holder,token";
constexpr std::string_view fence_body =
    "key {int8} NOT NULL, space {int2} NOT NULL, pid {int4} NOT NULL, holder {text} NOT NULL, token {int8} NOT NULL";

constexpr std::string_view sharing_columns = "name,token,permits,holders,writer,marked_until,waiting_until";
constexpr std::string_view sharing_body =
    "token {int8} NOT NULL, permits {int8} NOT NULL, holders {jsonb} NOT NULL, writer {text}, "
    "marked_until {timestamptz} NOT NULL DEFAULT '-infinity', "
    "waiting_until {timestamptz} NOT NULL DEFAULT '-infinity'";

// The bytes "dlock" NUL "pg". Without this lock, clients that create tables at the same time fail in several ways, even
// with IF NOT EXISTS.
constexpr const char* lock = "SELECT pg_catalog.pg_advisory_xact_lock(7236281174065180775)";

std::vector<std::string> transaction(const std::vector<std::string>& changes) {
  std::vector<std::string> statements = {"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
                                         "SELECT pg_catalog.set_config('lock_timeout', '5000', true)", lock};
  statements.insert(statements.end(), changes.begin(), changes.end());
  statements.emplace_back("COMMIT");
  return statements;
}

std::string create_table(std::string_view schema, const TableDefinition& table, Durability durability) {
  std::string columns = table.locks ? fill(name_column, {}) : std::string();
  if (!columns.empty() && !table.body.empty()) columns += ", ";
  columns += fill(table.body, {});
  const bool unlogged = table.locks && durability == Durability::unlogged;
  std::string out = unlogged ? "CREATE UNLOGGED TABLE IF NOT EXISTS " : "CREATE TABLE IF NOT EXISTS ";
  out += qualified(schema, table.name) + " (" + columns + ")";
  if (table.locks) out += storage;
  return out;
}

constexpr std::string_view rights = R"sql(
  SELECT n.oid IS NOT NULL, coalesce(pg_catalog.has_schema_privilege(n.oid, 'USAGE'), false),
    coalesce(pg_catalog.has_schema_privilege(n.oid, 'CREATE'), false),
    pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE')
  FROM (SELECT $1::{name} AS name) AS o LEFT JOIN pg_catalog.pg_namespace AS n ON n.nspname {=} o.name
)sql";

// Triggers of a table's owner run with the rights of the role that uses the table, and the owner of the schema can
// replace the table. A superuser trusts superusers alone. Other roles also trust roles whose members they are, and the
// owners of the database and of the schema.
constexpr std::string_view tables = R"sql(
  SELECT c.relname,
    (SELECT pg_catalog.string_agg(a.attname::{text}, ',' ORDER BY a.attnum) FROM pg_catalog.pg_attribute AS a
      WHERE a.attrelid {=} c.oid AND a.attnum {>} 0 AND NOT a.attisdropped),
    c.relpersistence, pg_catalog.has_table_privilege(c.oid, 'SELECT'), pg_catalog.has_table_privilege(c.oid, 'INSERT'),
    pg_catalog.has_table_privilege(c.oid, 'UPDATE'), o.rolname, CASE WHEN r.rolsuper THEN o.rolsuper AND s.rolsuper
      ELSE o.oid {=} r.oid OR o.rolsuper OR o.oid {=} d.datdba OR o.oid {=} n.nspowner
        OR pg_catalog.pg_has_role(o.oid, 'MEMBER') END,
    pg_catalog.concat_ws(', ',
      (SELECT pg_catalog.string_agg('trigger ' {||} pg_catalog.quote_ident(t.tgname), ', ' ORDER BY t.tgname)
        FROM pg_catalog.pg_trigger AS t WHERE t.tgrelid {=} c.oid AND NOT t.tgisinternal),
      (SELECT pg_catalog.string_agg('rule ' {||} pg_catalog.quote_ident(w.rulename), ', ' ORDER BY w.rulename)
        FROM pg_catalog.pg_rewrite AS w WHERE w.ev_class {=} c.oid),
      (SELECT pg_catalog.string_agg('policy ' {||} pg_catalog.quote_ident(p.polname), ', ' ORDER BY p.polname)
        FROM pg_catalog.pg_policy AS p WHERE p.polrelid {=} c.oid),
      (SELECT pg_catalog.string_agg(pg_catalog.pg_describe_object(e.refclassid, e.refobjid, e.refobjsubid), ', '
          ORDER BY e.refobjid)
        FROM pg_catalog.pg_depend AS e
        WHERE e.refclassid {=} ANY (ARRAY['pg_catalog.pg_proc', 'pg_catalog.pg_operator']::{regclass}[])
          AND e.objid {=} ANY (ARRAY(
          SELECT x.oid FROM pg_catalog.pg_attrdef AS x WHERE x.adrelid {=} c.oid
          UNION ALL SELECT k.oid FROM pg_catalog.pg_constraint AS k WHERE k.conrelid {=} c.oid
          UNION ALL SELECT i.indexrelid FROM pg_catalog.pg_index AS i WHERE i.indrelid {=} c.oid))),
      (SELECT pg_catalog.string_agg('type ' {||} pg_catalog.quote_ident(y.typname), ', ' ORDER BY y.typname)
        FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_type AS y ON y.oid {=} a.atttypid
        WHERE a.attrelid {=} c.oid AND y.typnamespace {<>} 'pg_catalog'::{regnamespace}),
      (SELECT pg_catalog.string_agg('table ' {||} h.inhrelid::{regclass}::{text}, ', ' ORDER BY h.inhseqno)
        FROM pg_catalog.pg_inherits AS h WHERE h.inhparent {=} c.oid))
  FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid {=} c.relnamespace
    JOIN pg_catalog.pg_roles AS o ON o.oid {=} c.relowner JOIN pg_catalog.pg_roles AS s ON s.oid {=} n.nspowner
    CROSS JOIN pg_catalog.pg_roles AS r CROSS JOIN pg_catalog.pg_database AS d
  WHERE n.nspname {=} $1::{name} AND (c.relkind {=} 'r' OR c.relkind {=} 'p') AND c.relname {=} ANY ({names})
    AND r.rolname {=} current_user AND d.datname {=} pg_catalog.current_database()
  ORDER BY c.relname
)sql";

}  // namespace

std::span<const TableDefinition> layout() {
  static constexpr auto tables = std::to_array<TableDefinition>({
      {.name = "meta",
       .columns = "singleton,version",
       .body = "singleton {bool} PRIMARY KEY DEFAULT true CHECK (singleton), version {int4} NOT NULL",
       .locks = false},
      {.name = "lease", .columns = lease_columns, .body = lease_body},
      {.name = "optimistic", .columns = optimistic_columns, .body = optimistic_body},
      {.name = "row_lock", .columns = "name", .body = ""},
      {.name = "row_token", .columns = "name,holder,token", .body = "holder {text} NOT NULL, token {int8} NOT NULL"},
      {.name = "fence", .columns = fence_columns, .body = fence_body},
      // The tables of the other kinds of locks.
      {.name = "lease_elect", .columns = lease_columns, .body = lease_body, .since_first = false},
      {.name = "optimistic_elect", .columns = optimistic_columns, .body = optimistic_body, .since_first = false},
      {.name = "lease_rw", .columns = sharing_columns, .body = sharing_body, .since_first = false},
      {.name = "lease_sem", .columns = sharing_columns, .body = sharing_body, .since_first = false},
      {.name = "fence_rw", .columns = fence_columns, .body = fence_body, .since_first = false},
      {.name = "fence_elect", .columns = fence_columns, .body = fence_body, .since_first = false},
  });
  return tables;
}

std::vector<std::string> creation(std::string_view schema, Durability durability, bool with_schema) {
  std::vector<std::string> changes;
  if (with_schema) changes.push_back("CREATE SCHEMA IF NOT EXISTS " + quote_identifier(schema));
  for (const TableDefinition& table : layout()) changes.push_back(create_table(schema, table, durability));
  return transaction(changes);
}

std::vector<std::string> recording(std::string_view schema) {
  return transaction({"INSERT INTO " + qualified(schema, "meta") + " (version) VALUES (" +
                      std::to_string(schema_version) + ") ON CONFLICT (singleton) DO NOTHING"});
}

std::string names_of_tables() {
  std::string out;
  for (const TableDefinition& table : layout()) {
    out += (out.empty() ? "'" : ", '") + std::string(table.name) + "'";
  }
  return fill("ARRAY[{names}]::{name}[]", {{"names", out}});
}

SchemaStatements schema_statements(std::string_view schema) {
  return {
      .version = {"SELECT version FROM " + qualified(schema, "meta"), "version"},
      .rights = {fill(rights, {}), "rights"},
      .tables = {fill(tables, {{"names", names_of_tables()}}), "tables"},
  };
}

std::string needed_grants(std::string_view schema) {
  const std::string quoted = quote_identifier(schema);
  return "GRANT USAGE ON SCHEMA " + quoted + " TO <role>; GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA " +
         quoted + " TO <role>";
}

std::string grant_to_forget(std::string_view schema) {
  return "GRANT DELETE ON ALL TABLES IN SCHEMA " + quote_identifier(schema) + " TO <role>";
}

}  // namespace dlock::postgres
