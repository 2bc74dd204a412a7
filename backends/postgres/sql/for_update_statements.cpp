// strategy=for-update: a row locked by an open transaction.
//
// The token is in another row than the one that is locked: waiters for a row that its holder changes lose their order.
// Until the holder commits, others cannot read what it wrote, but they can read its application_name: until the end of
// the transaction, that contains token and holder.
#include "backends/postgres/sql/sql_template.hpp"
#include "backends/postgres/sql/statements.hpp"

namespace dlock::postgres {

namespace {

constexpr std::string_view ensure = R"sql(
  INSERT INTO {row_lock} (name) VALUES ($1::{text}) ON CONFLICT (name) DO NOTHING
)sql";

// Not a lock_timeout: the lock of a row may take two waits, for earlier waiters and for the holder.
constexpr std::string_view set_patience = R"sql(
  SELECT pg_catalog.set_config('statement_timeout', $1::{text}, true)
)sql";

// No client but the holder of the row writes its token.
constexpr std::string_view lock = R"sql(
  WITH l AS MATERIALIZED (SELECT name FROM {row_lock} WHERE name {=} $1::{text} FOR UPDATE{how})
  INSERT INTO {row_token} AS t (name, token, holder) SELECT l.name, {us}, $2::{text} FROM l
  ON CONFLICT (name) DO UPDATE SET token = greatest(t.token {+} 1, {us}), holder = $2::{text}
  RETURNING t.token,
    pg_catalog.set_config('application_name', 'dlock#' {||} t.token::{text} {||} ':' {||} $2::{text}, true),
    pg_catalog.set_config('statement_timeout', '0', true){commit}
)sql";

// Inside the caller's transaction. Always one row, so that the caller learns why it did not get the lock, and its
// lock_timeout is restored. The server evaluates that row last.
constexpr std::string_view try_in_transaction = R"sql(
  WITH l AS MATERIALIZED (SELECT name FROM {row_lock} WHERE name {=} $1::{text} FOR UPDATE SKIP LOCKED), {fenced}
  SELECT f.token, EXISTS (SELECT FROM {row_lock} AS r WHERE r.name {=} $1::{text})
  FROM (SELECT) AS o LEFT JOIN f ON true
)sql";

constexpr std::string_view lock_in_transaction = R"sql(
  WITH {with_timeout}, l AS MATERIALIZED (
    SELECT r.name FROM {row_lock} AS r CROSS JOIN s WHERE r.name {=} $1::{text} AND s.ours IS NOT NULL FOR UPDATE OF r),
  {fenced}
  SELECT f.token, pg_catalog.set_config('lock_timeout', b.before, true),
    CASE WHEN $4::{text} {<>} '' THEN pg_catalog.set_config('statement_timeout', $4::{text}, true) END
  FROM b LEFT JOIN f ON true
)sql";

// A shorter one of the caller's stays.
constexpr std::string_view limit_in_transaction = R"sql(
  WITH b AS MATERIALIZED (SELECT pg_catalog.current_setting('statement_timeout') AS before)
  SELECT b.before, pg_catalog.set_config('statement_timeout',
    CASE WHEN b.before {<>} '0' AND b.before::{interval} {<} ($1::{text}::{float8} {*} pg_catalog.interval '1 millisecond')
      THEN b.before
      ELSE $1::{text} END, true)
  FROM b
)sql";

constexpr std::string_view waits_for_others = R"sql(
  WITH l AS MATERIALIZED (
    SELECT p.virtualtransaction, p.granted FROM pg_catalog.pg_locks AS p WHERE p.locktype {=} 'virtualxid')
  SELECT c.open, w.virtualtransaction
  FROM (SELECT pg_catalog.count(*) AS open FROM l) AS c
    LEFT JOIN (SELECT l.virtualtransaction FROM l WHERE NOT l.granted) AS w ON true
)sql";

constexpr std::string_view ensure_in_transaction = R"sql(
  WITH {with_timeout}, i AS (
    INSERT INTO {row_lock} (name) SELECT $1::{text} FROM s WHERE s.ours IS NOT NULL
    ON CONFLICT (name) DO NOTHING RETURNING name)
  SELECT pg_catalog.set_config('lock_timeout', b.before, true) FROM b LEFT JOIN i ON true
)sql";

constexpr std::string_view with_timeout =
    "b AS MATERIALIZED (SELECT pg_catalog.current_setting('lock_timeout') AS before), "
    "s AS MATERIALIZED (SELECT pg_catalog.set_config('lock_timeout', {timeout}, true) AS ours FROM b)";

constexpr std::string_view fenced =
    "f AS (INSERT INTO {row_token} AS t (name, token, holder) SELECT l.name, {us}, $2::{text} FROM l "
    "ON CONFLICT (name) DO UPDATE SET token = greatest(t.token {+} 1, {us}), holder = $2::{text} RETURNING t.token)";

// xmax of a locked row is the transaction that has locked it. One of its waiters has the lock on the tuple, and the
// others wait for that. A prepared transaction has no process. CTEs, so that the server reads each part once and not
// for each name.
constexpr std::string_view look = R"sql(
  WITH l AS MATERIALIZED (
    SELECT p.pid, p.granted, p.mode, p.locktype, p.transactionid, p.database, p.relation, p.page, p.tuple, {gid} AS gid
    FROM pg_catalog.pg_locks AS p WHERE p.locktype {=} ANY (ARRAY['transactionid', 'tuple']::{text}[])),
  h AS MATERIALIZED (
    SELECT l.transactionid, l.pid, l.gid FROM l
    WHERE l.locktype {=} 'transactionid' AND l.granted AND l.mode {=} 'ExclusiveLock'),
  w AS MATERIALIZED (
    SELECT l.relation, l.page, l.tuple::{int4} AS tuple, pg_catalog.count(*) AS waiters FROM l
    WHERE l.locktype {=} 'tuple' AND l.database {=} (SELECT d.oid FROM pg_catalog.pg_database AS d
      WHERE d.datname {=} pg_catalog.current_database())
    GROUP BY l.relation, l.page, l.tuple)
  SELECT r.name, h.transactionid IS NOT NULL,
    coalesce('prepared transaction ' {||} h.gid,
      pg_catalog.regexp_replace(a.application_name, '^([a-z]+[.])?dlock(#[0-9]+)?:', ''), ''),
    CASE WHEN h.transactionid IS NULL THEN coalesce(t.token, 0)
      ELSE coalesce(pg_catalog.substr(pg_catalog.substring(a.application_name, '^dlock#([0-9]+):'), 1, 18)::{int8}, 0)
      END,
    NULL::{int8}, coalesce(w.waiters, 0)
  FROM {row_lock} AS r
    LEFT JOIN h ON h.transactionid {=} r.xmax
    LEFT JOIN w ON w.relation {=} r.tableoid AND w.page {=} ((r.ctid::{text}::{point})[0])::{int4}
      AND w.tuple {=} ((r.ctid::{text}::{point})[1])::{int4}
    LEFT JOIN {row_token} AS t ON t.name {=} r.name
    LEFT JOIN pg_catalog.pg_stat_activity AS a ON a.pid {=} h.pid
)sql";

// If $2 is not empty, it has the processes that the server was asked to end. They have the lock until they are gone.
constexpr std::string_view break_lock = R"sql(
  SELECT pg_catalog.pg_terminate_backend(p.pid), pg_catalog.quote_literal({gid}), p.pid
  FROM {row_lock} AS r JOIN pg_catalog.pg_locks AS p
    ON p.locktype {=} 'transactionid' AND p.granted AND p.mode {=} 'ExclusiveLock' AND p.transactionid {=} r.xmax
  WHERE r.name {=} $1::{text} AND (pg_catalog.cardinality($2::{int8}[]) {=} 0 OR p.pid::{int8} {=} ANY ($2::{int8}[]))
)sql";

// Only the client that has locked the row writes its token, so t may have a newer token than l. A row without a token
// is from a holder that died, or a client is about to lock it for the first time: it is deleted only by its name.
constexpr std::string_view forget = R"sql(
  WITH l AS MATERIALIZED (
    SELECT r.name, t.name IS NOT NULL AS fenced
    FROM {row_lock} AS r LEFT JOIN {row_token} AS t ON t.name {=} r.name
    WHERE ($1::{text} {=} '' OR r.name {=} $1::{text}) AND (t.token {old} OR (t.name IS NULL AND $1::{text} {<>} ''))
    LIMIT $3::{int8} FOR UPDATE OF r SKIP LOCKED),
  t AS MATERIALIZED (
    SELECT name FROM {row_token} WHERE name {=} ANY (ARRAY(SELECT l.name FROM l)) AND token {old}
    FOR UPDATE SKIP LOCKED),
  d AS (
    DELETE FROM {row_token} WHERE name {=} ANY (ARRAY(SELECT t.name FROM t)) RETURNING name{commit}),
  r AS (
    DELETE FROM {row_lock}
    WHERE name {=} ANY (ARRAY(SELECT l.name FROM l WHERE NOT l.fenced UNION ALL SELECT d.name FROM d)) RETURNING name)
  SELECT name FROM r
)sql";

}  // namespace

Statement limit_of_wait() {
  return {fill(limit_in_transaction, {}), "limit_of_wait"};
}

Statement waits_for_snapshots() {
  return {fill(waits_for_others, {}), "waits_for_snapshots"};
}

ForUpdateStatements for_update_statements(std::string_view schema, Durability durability) {
  const Fillings common = common_fillings(schema, durability);
  const auto statement = [&](std::string_view text, const char* word) { return Statement{fill(text, common), word}; };
  const auto locking = [&](const std::string& how, const char* word) {
    Fillings fillings = common;
    fillings.emplace_back("how", how);
    return Statement{fill(lock, fillings), word};
  };
  // The caller decides whether its transaction waits for the disk.
  const auto callers = [&](std::string_view text, const std::string& timeout, const char* word) {
    Fillings fillings = common_fillings(schema, std::nullopt);
    fillings.emplace_back("fenced", fill(fenced, fillings));
    fillings.emplace_back("with_timeout", fill(with_timeout, {{"timeout", timeout + "::pg_catalog.text"}}));
    return Statement{fill(text, fillings), word};
  };
  const std::string looking(look);
  return {
      .ensure = statement(ensure, "row_lock.ensure"),
      .begin = {"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", "begin"},
      .set_patience = statement(set_patience, "set_patience"),
      .try_lock = locking(" NOWAIT", "row_lock.try_lock"),
      .lock = locking("", "row_lock.lock"),
      .heartbeat = {heartbeat_sql, "heartbeat"},
      .commit = {"COMMIT", "commit"},
      .rollback = {"ROLLBACK", "rollback"},
      .try_in_transaction = callers(try_in_transaction, "", "row_lock.try_in_transaction"),
      .lock_in_transaction = callers(lock_in_transaction, "$3", "row_lock.lock_in_transaction"),
      .ensure_in_transaction = callers(ensure_in_transaction, "$2", "row_lock.ensure_in_transaction"),
      .inspect = statement(looking + "WHERE r.name {=} $1::{text}", "row_lock.inspect"),
      .list = statement(looking + "ORDER BY r.name LIMIT $1::{int8}", "row_lock.list"),
      .break_lock = statement(break_lock, "row_lock.break_lock"),
      .forget = statement(forget, "row_lock.forget"),
  };
}

}  // namespace dlock::postgres
