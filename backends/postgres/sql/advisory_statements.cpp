// strategy=advisory: PostgreSQL's own locks, which have only a number, and a row for token and holder.
#include "backends/postgres/schema/layout.hpp"
#include "backends/postgres/sql/identifier.hpp"
#include "backends/postgres/sql/sql_template.hpp"
#include "backends/postgres/sql/statements.hpp"

namespace dlock::postgres {

namespace {

using KeySpace = AdvisoryKey::KeySpace;

// a acquires the locks; {granted}: its column "ok" says that it did. The insertion happens after that, so tokens grow
// in the order of the grants, and no other client has locked the row. EXCLUDED may be older than a wait, which is
// harmless for the key and the holder.
constexpr std::string_view fenced = R"sql(
  WITH {a}
  INSERT INTO {fence} AS f (name, key, space, pid, holder, token)
  SELECT a.name, a.key, {space}, pg_catalog.pg_backend_pid(), a.holder, {us} {more} FROM a WHERE {granted}
  ORDER BY a.name COLLATE {C}
  ON CONFLICT (name) DO UPDATE SET key = excluded.key, space = {space}, pid = pg_catalog.pg_backend_pid(),
    holder = excluded.holder, token = greatest(f.token {+} 1, {us}) {more}
  RETURNING {also}f.token, pg_catalog.pg_backend_pid(){end}
)sql";

constexpr std::string_view trying =
    "a AS MATERIALIZED (SELECT {asked}, pg_catalog.pg_try_advisory_lock{shared}({arguments}) AS ok)";
constexpr std::string_view trying_in_transaction =
    "a AS MATERIALIZED (SELECT {asked}, pg_catalog.pg_try_advisory_xact_lock({arguments}) AS ok)";
constexpr std::string_view trying_many = R"sql(
  a AS MATERIALIZED (
    SELECT q.name, q.holder, {key} AS key, pg_catalog.pg_try_advisory_lock({arguments}) AS ok
    FROM ROWS FROM (pg_catalog.unnest($1::{text}[]), pg_catalog.unnest($2::{text}[]), pg_catalog.unnest($3::{text}[]))
      AS q (key, name, holder))
)sql";

// A session that has the lock would get it again before the clients that wait for it.
constexpr std::string_view joining = R"sql(
  a AS MATERIALIZED (SELECT {asked}, NOT EXISTS (
    SELECT FROM pg_catalog.pg_locks AS p
    WHERE p.locktype {=} 'advisory' AND NOT p.granted AND p.mode {=} 'ExclusiveLock' AND p.objsubid {=} {space}
      AND ((p.classid::{int8} {<<} 32) {|} p.objid::{int8}) {=} {key} AND p.database {=} (
        SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname {=} pg_catalog.current_database())) AS ok)
)sql";

// set_config() lasts until the end of the transaction, here of the statement, and CASE evaluates it first. The function
// returns void, which is '' as a text.
constexpr std::string_view waiting =
    "a AS MATERIALIZED (SELECT {asked}, CASE WHEN pg_catalog.set_config('lock_timeout', $4::{text}, true) IS NOT NULL "
    "THEN pg_catalog.pg_advisory_lock{shared}({arguments})::{text} END AS ok)";

constexpr std::string_view waiting_in_transaction =
    "b AS MATERIALIZED (SELECT pg_catalog.current_setting('lock_timeout') AS before), "
    "a AS MATERIALIZED (SELECT {asked}, b.before, "
    "CASE WHEN pg_catalog.set_config('lock_timeout', $4::{text}, true) IS NOT NULL "
    "THEN pg_catalog.pg_advisory_xact_lock({arguments})::{text} END AS ok FROM b)";

constexpr std::string_view restore =
    ", pg_catalog.set_config('lock_timeout', (SELECT before FROM a), true), "
    "CASE WHEN $5::{text} {<>} '' THEN pg_catalog.set_config('statement_timeout', $5::{text}, true) END";

// CASE and the order of the columns make the lock come first and the unlock last.
constexpr std::string_view proof = R"sql(
  SELECT pg_catalog.pg_backend_pid(),
    CASE WHEN pg_catalog.pg_try_advisory_lock($1::{int8}) THEN EXISTS (
      SELECT FROM pg_catalog.pg_locks AS p
      WHERE p.locktype {=} 'advisory' AND p.granted AND p.pid {=} pg_catalog.pg_backend_pid()) END,
    pg_catalog.pg_advisory_unlock($1::{int8})
)sql";

constexpr std::string_view unlock = "SELECT pg_catalog.pg_advisory_unlock{shared}({arguments})";
constexpr std::string_view unlock_many =
    "SELECT pg_catalog.pg_advisory_unlock{shared}({arguments}) FROM pg_catalog.unnest($1::{text}[]) AS q (key)";

// application_name says who the holder is. In a session that shares locks, its last word says only the purpose of the
// session, and is omitted.
constexpr std::string_view name_of_holder =
    "coalesce('prepared transaction ' {||} h.gid, pg_catalog.regexp_replace(s.application_name, "
    "'^([a-z]+[.])?dlock:{purpose}), '')";

// Locks of one name, or of all, from the locks that the server has: dlock needs no tables for them. pg_locks shows the
// halves of the key as unsigned numbers. A prepared transaction has no process. The row f is about dlock's last grant,
// and another program may have the lock now. CTEs, so that the server reads each part once and not for each name.
constexpr std::string_view look = R"sql(
  WITH {locks},
  h AS MATERIALIZED (
    SELECT {one_each} l.key, l.objsubid, l.pid, l.gid{is_shared} FROM l WHERE l.granted),
  w AS MATERIALIZED (
    SELECT l.key, l.objsubid, pg_catalog.count(*) AS waiters FROM l WHERE NOT l.granted GROUP BY l.key, l.objsubid)
  SELECT pg_catalog.split_part(o.name, pg_catalog.chr(9), 1), h.key IS NOT NULL,
    CASE WHEN h.key IS NULL THEN '' WHEN h.pid {=} f.pid THEN f.holder ELSE {name_of_holder} END,
    CASE WHEN h.key IS NULL OR h.pid {=} f.pid THEN coalesce(f.token, 0) ELSE 0 END,
    NULL::{int8}, coalesce(w.waiters, 0){how}
  FROM {names}
    LEFT JOIN h ON h.key {=} o.key AND h.objsubid {=} o.space
    LEFT JOIN w ON w.key {=} o.key AND w.objsubid {=} o.space
    LEFT JOIN pg_catalog.pg_stat_activity AS s ON s.pid {=} h.pid
)sql";

constexpr std::string_view locks = R"sql(
  l AS MATERIALIZED (
    SELECT p.pid, p.granted, p.objsubid{mode}, (p.classid::{int8} {<<} 32) {|} p.objid::{int8} AS key, {gid} AS gid
    FROM pg_catalog.pg_locks AS p
    WHERE p.locktype {=} 'advisory' AND p.database {=} (
      SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname {=} pg_catalog.current_database()))
)sql";

// For each holder: a reader has one of two permits, since others may have the other one; its token, if that is known.
constexpr std::string_view how_held = R"sql(
  , 2, CASE WHEN h.shared THEN 1 ELSE 2 END, CASE WHEN h.pid {=} f.pid THEN f.token ELSE 0 END
)sql";

constexpr std::string_view one_name =
    "(SELECT $2::{text} AS name, {key} AS key, {space} AS space) AS o LEFT JOIN {fence} AS f ON f.name {=} o.name";
constexpr std::string_view one_name_without_tables =
    "(SELECT $2::{text} AS name, {key} AS key, {space} AS space) AS o LEFT JOIN (SELECT 0 AS pid, ''::{text} AS "
    "holder, "
    "0::{int8} AS token WHERE false) AS f ON true";
constexpr std::string_view all_names = "{fence} AS f CROSS JOIN LATERAL (SELECT f.name, f.key, f.space) AS o";

// As that of for-update.
constexpr std::string_view break_lock = R"sql(
  WITH {locks}
  SELECT pg_catalog.pg_terminate_backend(l.pid), pg_catalog.quote_literal(l.gid), l.pid FROM l
  WHERE l.key {=} {key} AND l.objsubid {=} {space} AND l.granted
    AND (pg_catalog.cardinality($2::{int8}[]) {=} 0 OR l.pid::{int8} {=} ANY ($2::{int8}[]))
)sql";

// A row may be deleted only by a client that has its lock, here until the end of the transaction. CASE tries the locks
// of the rows in question alone, before FOR UPDATE reads the newest version of the row.
constexpr std::string_view forget = R"sql(
  WITH a AS MATERIALIZED (
    SELECT name FROM {fence}
    WHERE CASE WHEN NOT (($1::{text} {=} '' OR name {=} $1::{text}) AND token {old}) THEN false
      WHEN space {=} 1 THEN pg_catalog.pg_try_advisory_xact_lock(key)
      ELSE pg_catalog.pg_try_advisory_xact_lock((key {>>} 32)::{int4}, ((key {<<} 32) {>>} 32)::{int4}) END
    LIMIT $3::{int8} FOR UPDATE SKIP LOCKED),
  d AS (
    DELETE FROM {fence} WHERE name {=} ANY (ARRAY(SELECT a.name FROM a)) RETURNING name{commit})
  SELECT pg_catalog.split_part(name, pg_catalog.chr(9), 1) FROM d
)sql";

// The key as one number, and as the arguments of the lock functions, from a parameter or a column.
Fillings key_fillings(KeySpace space, const std::string& from) {
  const Fillings where = {{"p", from}};
  const auto of_space = [&](std::string_view key, std::string_view arguments, const char* number) -> Fillings {
    return {{"key", fill(key, where)}, {"arguments", fill(arguments, where)}, {"space", number}};
  };
  constexpr std::string_view bigint = "{p}::{int8}";
  constexpr std::string_view halves = "({p}::{int8} {>>} 32)::{int4}, (({p}::{int8} {<<} 32) {>>} 32)::{int4}";
  constexpr std::string_view hash = "pg_catalog.hashtextextended({p}::{text}, 0)";
  if (space == KeySpace::server) return of_space(hash, hash, "1");
  return space == KeySpace::pair ? of_space(bigint, halves, "2") : of_space(bigint, bigint, "1");
}

}  // namespace

AdvisoryStatements advisory_statements(std::string_view schema, Durability durability, KeySpace space, LockKind kind,
                                       Mode mode) {
  const std::string table = table_of("fence", kind);
  const std::string ending = mode == Mode::shared ? "_shared" : "";
  const bool may_be_shared = kind == LockKind::read_write;
  Fillings fillings = common_fillings(schema, durability);
  const auto add = [&](std::string_view word, std::string_view text) {
    fillings.emplace_back(word, fill(text, fillings));
  };
  fillings.emplace(fillings.begin(), "fence", qualified(schema, table));
  add("shared", ending);
  add("mode", may_be_shared ? ", p.mode {=} 'ShareLock' AS shared" : "");
  add("is_shared", may_be_shared ? ", shared" : "");
  add("one_each", may_be_shared ? "" : "DISTINCT ON (l.key, l.objsubid)");
  add("how", may_be_shared ? how_held : "");
  add("purpose", may_be_shared ? "| (locks|waiting)$', '', 'g'" : "', ''");
  add("name_of_holder", name_of_holder);
  add("locks", locks);

  const auto with = [&](const char* key, Fillings all = {}) {
    for (const Fillings& more : {key_fillings(space, key), fillings}) all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const Fillings of_one =
      with("$1", {{"asked", fill("$2::{text} AS name, $3::{text} AS holder, {key} AS key", with("$1"))}});
  const Fillings of_many = with("q.key");
  const auto statement = [&](std::string_view text, const char* word, const Fillings& all) {
    return Statement{fill(text, all), table + "." + word + ending};
  };
  // more: how many tokens the statement mints besides the first. also: a column in front of the token.
  const auto lock = [&](const char* word, std::string_view how, const char* granted, std::string_view end,
                        const Fillings& all, std::string_view more = "", const char* also = "") {
    return statement(fenced, word,
                     with("$1", {{"a", fill(how, all)},
                                 {"granted", fill(granted, all)},
                                 {"end", fill(end, all)},
                                 {"more", fill(more, all)},
                                 {"also", also}}));
  };
  const auto looking = [&](const char* word, std::string_view names, const std::string& end = "") {
    return statement(std::string(look) + end, word, with("$1", {{"names", fill(names, of_one)}}));
  };
  const std::string_view many = mode == Mode::shared ? "{+} ($4::{int8} {-} 1)" : "";
  return {
      .try_lock = lock("try_lock", trying, "a.ok", "{commit}", of_one, many),
      .join = lock("join", joining, "a.ok", "{commit}", of_one, many),
      .lock_slice = lock("lock_slice", waiting, "a.ok {=} '' AND {brief}", "{commit}", of_one),
      .try_many = lock("try_many", trying_many, "a.ok", "{commit}", of_many, "", "f.name, "),
      .proof = statement(proof, "proof", of_one),
      .unlock = statement(unlock, "unlock", of_one),
      .unlock_many = statement(unlock_many, "unlock_many", of_many),
      // The caller decides whether its transaction waits for the disk.
      .try_in_transaction = lock("try_in_transaction", trying_in_transaction, "a.ok", "", of_one),
      .lock_in_transaction = lock("lock_in_transaction", waiting_in_transaction, "a.ok {=} ''", restore, of_one),
      .inspect = looking("inspect", one_name),
      .inspect_without_tables = looking("inspect_without_tables", one_name_without_tables),
      .list = looking("list", all_names, "ORDER BY o.name LIMIT $1::{int8}"),
      .break_lock = statement(break_lock, "break_lock", of_one),
      .forget = statement(forget, "forget", of_one),
  };
}

}  // namespace dlock::postgres
