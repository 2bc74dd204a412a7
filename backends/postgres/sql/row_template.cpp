#include "backends/postgres/sql/row_template.hpp"

#include <string>

#include "backends/postgres/schema/layout.hpp"
#include "backends/postgres/sql/identifier.hpp"
#include "backends/postgres/sql/sql_template.hpp"

namespace dlock::postgres {

namespace {

// In each statement, f locks the rows that may be changed and skips those that another client has locked. A locking
// clause reads the newest version of a row, so the conditions of f hold until the end of the transaction. No part of a
// statement sees a row that was inserted after the statement began. The server keeps a plan, and a plan that was made
// for an empty table has to do for a full one. So no table is scanned (see preamble.cpp), each name is looked up by
// itself ("each", LATERAL, OFFSET 0), and LIMIT, which cuts nothing off, makes the planner expect few rows.
constexpr std::string_view each =
    "q CROSS JOIN LATERAL (SELECT * FROM {table} AS l WHERE l.name {=} q.name OFFSET 0) AS l";

// At the end of a list of columns of row l: notifies the clients that have marked the row.
constexpr std::string_view notify = R"sql(
  , CASE WHEN {channel}::{text} {<>} '' AND l.waiting_until {>} {now}
    THEN pg_catalog.pg_notify({channel}::{text}, l.name)::{text} END
)sql";

// q are the requests, g one for each name. A statement for one request has it in q as constants, which the server folds
// into the rest: with arrays it takes an eighth longer.
constexpr std::string_view acquires = R"sql(
  q AS MATERIALIZED (
    SELECT * FROM ROWS FROM (pg_catalog.unnest($1::{text}[]), pg_catalog.unnest($2::{text}[]),
      pg_catalog.unnest($3::{text}[]), pg_catalog.unnest($4::{int8}[]), pg_catalog.unnest($5::{text}[]),
      pg_catalog.unnest($6::{int8}[]), pg_catalog.unnest($7::{int8}[]))
      WITH ORDINALITY AS q (name, owner, holder, lease_ms, seen_owner, seen_version, in_doubt, i)),
  g AS MATERIALIZED (
    SELECT DISTINCT ON (q.name COLLATE {C}) q.name, q.owner, q.holder, q.lease_ms, q.seen_owner, q.seen_version
    FROM q ORDER BY q.name COLLATE {C}, q.in_doubt DESC, q.i)
)sql";
constexpr std::string_view one_acquire = R"sql(
  q AS NOT MATERIALIZED (
    SELECT $1::{text} AS name, $2::{text} AS owner, $3::{text} AS holder, $4::{int8} AS lease_ms,
      $5::{text} AS seen_owner, $6::{int8} AS seen_version WHERE $7::{int8} IS NOT NULL),
  g AS NOT MATERIALIZED (SELECT * FROM q)
)sql";
constexpr std::string_view renewals = R"sql(
  q AS MATERIALIZED (
    SELECT * FROM ROWS FROM (pg_catalog.unnest($1::{text}[]), pg_catalog.unnest($2::{text}[]),
      pg_catalog.unnest($3::{int8}[])) AS q (name, owner, lease_ms))
)sql";
constexpr std::string_view one_renewal =
    "q AS NOT MATERIALIZED (SELECT $1::{text} AS name, $2::{text} AS owner, $3::{int8} AS lease_ms)";
constexpr std::string_view releases = R"sql(
  q AS MATERIALIZED (
    SELECT * FROM ROWS FROM (pg_catalog.unnest($1::{text}[]), pg_catalog.unnest($2::{text}[]),
      pg_catalog.unnest($3::{int8}[])) AS q (name, owner, gave_up))
)sql";
constexpr std::string_view one_release =
    "q AS NOT MATERIALIZED (SELECT $1::{text} AS name, $2::{text} AS owner, $3::{int8} AS gave_up)";

// Only i waits: for transactions that insert the same names, in the order of the names, and not for long. w are the
// grants.
constexpr std::string_view acquire = R"sql(
  WITH {requests},
  f AS MATERIALIZED (
    SELECT l.name FROM g AS q CROSS JOIN LATERAL (
      SELECT l.name FROM {table} AS l WHERE l.name {=} q.name AND ({free} OR l.owner {=} q.owner)
      FOR NO KEY UPDATE SKIP LOCKED) AS l
    LIMIT {how_many}),
  u AS (
    UPDATE {table} AS l SET owner = q.owner, holder = q.holder, {renewal},
      token = CASE WHEN l.owner {=} q.owner THEN l.token ELSE greatest(l.token {+} 1, {us}) END
    FROM g AS q JOIN f ON f.name {=} q.name
    WHERE l.name {=} q.name AND ({free} OR l.owner {=} q.owner)
    RETURNING l.name, l.owner, l.token, {seen}{commit}{notify}),
  i AS (
    INSERT INTO {table} AS l (name, owner, holder, token, {columns})
    SELECT q.name, q.owner, CASE WHEN {brief} THEN q.holder END, {us}, {values} FROM g AS q
    WHERE NOT EXISTS (SELECT FROM {table} AS l WHERE l.name {=} q.name OFFSET 0)
    ORDER BY q.name COLLATE {C}
    ON CONFLICT (name) DO NOTHING RETURNING l.name, l.owner, l.token, {seen}{commit}),
  w AS (
    SELECT name, owner, token, seen_owner, seen_version, ms FROM u
    UNION ALL SELECT name, owner, token, seen_owner, seen_version, ms FROM i)
  SELECT q.owner, CASE WHEN w.owner {=} q.owner THEN w.token END, w.seen_owner, w.seen_version, w.ms
    FROM q JOIN w ON w.name {=} q.name
  UNION ALL SELECT q.owner, NULL::{int8}, {seen} FROM {each}
    WHERE {held} AND coalesce(l.owner {<>} q.owner, true) AND NOT EXISTS (SELECT FROM w WHERE w.name {=} q.name)
)sql";

constexpr std::string_view renew = R"sql(
  WITH {requests},
  f AS MATERIALIZED (
    SELECT l.name FROM q CROSS JOIN LATERAL (
      SELECT l.name FROM {table} AS l WHERE l.name {=} q.name AND l.owner {=} q.owner AND {held}
      FOR NO KEY UPDATE SKIP LOCKED) AS l
    LIMIT {how_many}),
  u AS (
    UPDATE {table} AS l SET {renewal} FROM q JOIN f ON f.name {=} q.name
    WHERE l.name {=} q.name AND l.owner {=} q.owner AND {held}
    RETURNING l.owner{commit})
  SELECT owner, true FROM u
  UNION ALL SELECT q.owner, false FROM {each}
    WHERE l.owner {=} q.owner AND {held} AND NOT EXISTS (SELECT FROM u WHERE u.owner {=} q.owner)
)sql";

// Not DELETE, which would lose the token. The mark stays, and expires by itself. While another transaction has locked
// the row, the outcome for an owner that gave up is unknown: that may be its own acquire, sent over an earlier
// connection.
constexpr std::string_view release = R"sql(
  WITH {requests},
  f AS MATERIALIZED (
    SELECT l.name, l.owner FROM q CROSS JOIN LATERAL (
      SELECT l.name, l.owner FROM {table} AS l WHERE l.name {=} q.name AND (l.owner {=} q.owner OR q.gave_up {=} 1)
      FOR NO KEY UPDATE SKIP LOCKED) AS l
    LIMIT {how_many}),
  r AS (
    UPDATE {table} AS l SET {freeing} FROM q JOIN f ON f.name {=} q.name
    WHERE l.name {=} q.name AND l.owner {=} q.owner
    RETURNING q.owner{commit}{notify})
  SELECT owner, true FROM r
  UNION ALL SELECT q.owner, false FROM {each}
    WHERE (l.owner {=} q.owner OR q.gave_up {=} 1) AND NOT EXISTS (SELECT FROM r WHERE r.owner {=} q.owner)
      AND NOT EXISTS (SELECT FROM f WHERE f.name {=} q.name AND coalesce(f.owner {<>} q.owner, true))
)sql";

// For a row that m does not mark, the other half reads the version of the row from when the statement began. If that
// was marked for long enough, every release since then has notified. NULL: a transaction was changing it.
constexpr std::string_view mark = R"sql(
  WITH q AS MATERIALIZED (SELECT * FROM pg_catalog.unnest($1::{text}[]) AS q (name)),
  f AS MATERIALIZED (
    SELECT l.name FROM q CROSS JOIN LATERAL (
      SELECT l.name FROM {table} AS l WHERE l.name {=} q.name AND {awaited}
        AND l.waiting_until {<} ({now} {+} ($3::{int8}::{float8} {*} {ms}))
      FOR NO KEY UPDATE SKIP LOCKED) AS l
    LIMIT {how_many}),
  m AS (
    UPDATE {table} AS l SET waiting_until = {now} {+} ($2::{int8}::{float8} {*} {ms})
    FROM q JOIN f ON f.name {=} q.name WHERE l.name {=} q.name AND {awaited}
    RETURNING l.name, pg_catalog.set_config('synchronous_commit', 'off', true))
  SELECT name, true FROM m
  UNION ALL SELECT l.name, CASE WHEN NOT ({awaited}) THEN false
      WHEN l.waiting_until {>=} ({now} {+} ($3::{int8}::{float8} {*} {ms})) THEN true END
    FROM {each} WHERE NOT EXISTS (SELECT FROM m WHERE m.name {=} q.name)
)sql";

constexpr std::string_view break_lock = R"sql(
  WITH f AS MATERIALIZED (
    SELECT l.name FROM {table} AS l WHERE l.name {=} $1::{text} AND {held} FOR NO KEY UPDATE SKIP LOCKED),
  r AS (
    UPDATE {table} AS l SET {freeing} WHERE l.name {=} (SELECT f.name FROM f) AND {held}
    RETURNING true AS done{commit}{notify})
  SELECT done FROM r
  UNION ALL SELECT false FROM {table} AS l WHERE l.name {=} $1::{text} AND {held} AND NOT EXISTS (SELECT FROM r)
)sql";

// The mark outlives the lease that was waited for, so each waiter has tried by the time that the row goes.
constexpr std::string_view forget = R"sql(
  WITH f AS MATERIALIZED (
    SELECT l.name FROM {table} AS l
    WHERE ($1::{text} {=} '' OR l.name {=} $1::{text}) AND NOT ({in_use}) AND l.waiting_until {<=} {now}
      AND l.token {old}
    LIMIT $3::{int8} FOR UPDATE SKIP LOCKED),
  d AS (
    DELETE FROM {table} WHERE name {=} ANY (ARRAY(SELECT f.name FROM f)) RETURNING name{commit})
  SELECT name FROM d
)sql";

}  // namespace

RowStatements row_statements_of(const RowFragments& fragments, std::string_view schema, Durability durability,
                                LockKind kind) {
  const std::string table = table_of(fragments.table, kind);
  Fillings fillings = common_fillings(schema, durability);
  fillings.emplace_back("table", qualified(schema, table));
  const auto add = [&](std::string_view word, std::string_view text) {
    fillings.emplace_back(word, fill(text, fillings));
  };
  add("each", each);
  add("used", fragments.used);
  add("held", fragments.held);
  add("free", fragments.free);
  add("renewal", fragments.renewal);
  add("freeing", fragments.freeing);
  add("columns", fragments.columns);
  add("values", fragments.values);
  add("seen", fragments.seen);
  add("in_use", fragments.in_use.empty() ? fragments.held : fragments.in_use);
  // Other kinds of locks have observers, too, which are notified of grants. So their rows are marked even while free.
  add("awaited", kind == LockKind::lock ? fragments.held : "true");
  const auto statement = [&](std::string_view text, const char* of, const char* channel = "''",
                             std::string_view requests = {}, bool one = false) {
    Fillings all = fillings;
    all.emplace_back("requests", fill(requests, {}));
    all.emplace_back("how_many", one ? "1" : fill("pg_catalog.cardinality($1::{text}[])", {}));
    all.emplace_back("channel", channel);
    all.emplace_back("notify", fill(notify, all));
    return Statement{fill(text, all), table + "." + of};
  };
  const std::string look(fragments.look);
  RowStatements statements = {
      .mark = statement(mark, "mark"),
      .inspect = statement(look + "WHERE l.name {=} $1::{text}", "inspect"),
      .list = statement(look + "ORDER BY l.name LIMIT $1::{int8}", "list"),
      .break_lock = statement(break_lock, "break_lock", "$2"),
      .forget = statement(forget, "forget"),
  };
  if (!fragments.change.empty()) {
    statements.change = statement(fragments.change, "change");
  } else {
    statements.acquire = statement(acquire, "acquire", "$8", acquires);
    statements.acquire_one = statement(acquire, "acquire_one", "$8", one_acquire, true);
    statements.renew = statement(renew, "renew", "''", renewals);
    statements.renew_one = statement(renew, "renew_one", "''", one_renewal, true);
    statements.release = statement(release, "release", "$4", releases);
    statements.release_one = statement(release, "release_one", "$4", one_release, true);
  }
  return statements;
}

// strategy=table: a row with owner and expiry.
RowStatements table_statements(std::string_view schema, Durability durability, LockKind kind) {
  return row_statements_of(
      {.table = "lease",
       .held = "l.expires_at {>} {now}",
       .free = "l.expires_at {<=} {now}",
       .renewal = "expires_at = {now} {+} (q.lease_ms::{float8} {*} {ms})",
       .freeing = "owner = NULL, expires_at = '-infinity'",
       .columns = "expires_at",
       .values = "{now} {+} (q.lease_ms::{float8} {*} {ms})",
       .seen = "NULL::{text} AS seen_owner, NULL::{int8} AS seen_version, CASE WHEN pg_catalog.isfinite(l.expires_at) "
               "THEN (extract(epoch FROM l.expires_at {-} {now}) {*} 1000)::{int8} END AS ms",
       .look = "SELECT l.name, l.expires_at {>} {now}, CASE WHEN l.expires_at {>} {now} THEN l.holder ELSE '' END, "
               "l.token, CASE WHEN l.expires_at {>} {now} AND pg_catalog.isfinite(l.expires_at) "
               "THEN greatest((extract(epoch FROM l.expires_at {-} {now}) {*} 1000)::{int8}, 0) END, NULL::{int8} "
               "FROM {table} AS l "},
      schema, durability, kind);
}

// strategy=optimistic: a row with owner and version. No clock of the server decides who has a lock; it only helps the
// token, and says for how long a mark is good. The row of a holder that has died has an owner until a client takes the
// lock over or breaks it.
RowStatements optimistic_statements(std::string_view schema, Durability durability, LockKind kind) {
  return row_statements_of(
      {.table = "optimistic",
       .held = "l.owner IS NOT NULL",
       .free = "l.owner IS NULL OR (l.owner {=} q.seen_owner AND l.version {=} q.seen_version)",
       .renewal = "version = l.version {+} 1, lease_ms = q.lease_ms",
       .freeing = "owner = NULL, version = l.version {+} 1",
       .columns = "version, lease_ms",
       .values = "1, q.lease_ms",
       .seen = "l.owner AS seen_owner, l.version AS seen_version, l.lease_ms AS ms",
       .look = "SELECT l.name, l.owner IS NOT NULL, CASE WHEN l.owner IS NOT NULL THEN l.holder ELSE '' END, l.token, "
               "NULL::{int8}, NULL::{int8} FROM {table} AS l "},
      schema, durability, kind);
}

RowStatements row_statements(Strategy strategy, std::string_view schema, Durability durability, LockKind kind) {
  if (strategy == Strategy::optimistic) return optimistic_statements(schema, durability, kind);
  const bool sharing = kind == LockKind::read_write || kind == LockKind::semaphore;
  return sharing ? sharing_statements(schema, durability, kind) : table_statements(schema, durability, kind);
}

}  // namespace dlock::postgres
