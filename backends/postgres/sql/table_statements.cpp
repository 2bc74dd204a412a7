// strategy=table: a row with owner and expiry.
#include "backends/postgres/sql/row_texts.hpp"

namespace dlock::postgres {

namespace {

// In each of them f locks the rows that may be changed and passes over those that another client has locked. Locking
// looks at the newest version of a row, so what f has found holds until the end of the transaction. A row that was
// inserted meanwhile is seen by no part of a statement. A plan is kept, and one that was made for an empty table has to
// do for a full one. So no table is scanned (see preamble.cpp), each of many names is looked for by itself ("each",
// LATERAL, OFFSET 0), and LIMIT, which cuts nothing off, lets few rows be expected.
constexpr std::string_view acquire = R"sql(
  WITH f AS MATERIALIZED (
    SELECT name FROM {lease} WHERE name {=} $1::{text} AND (expires_at {<=} {now} OR owner {=} $2::{text})
    FOR NO KEY UPDATE SKIP LOCKED),
  u AS (
    UPDATE {lease} SET owner = $2::{text}, holder = $3::{text}, expires_at = {now} {+} ($4::{int8}::{float8} {*} {ms}),
      token = CASE WHEN owner {=} $2::{text} THEN token ELSE greatest(token {+} 1, {us}) END
    WHERE name {=} (SELECT f.name FROM f) AND (expires_at {<=} {now} OR owner {=} $2::{text})
    RETURNING token{commit}{announce}),
  i AS (
    INSERT INTO {lease} (name, owner, holder, token, expires_at)
    SELECT $1::{text}, $2::{text}, CASE WHEN {brief} THEN $3::{text} END, {us}, {now} {+} ($4::{int8}::{float8} {*} {ms})
    WHERE NOT EXISTS (SELECT FROM {lease} WHERE name {=} $1::{text})
    ON CONFLICT (name) DO NOTHING RETURNING token{commit})
  SELECT $2::{text}, token, NULL::{text}, NULL::{int8}, NULL::{int8} FROM u
  UNION ALL SELECT $2::{text}, token, NULL::{text}, NULL::{int8}, NULL::{int8} FROM i
  UNION ALL SELECT $2::{text}, NULL::{int8}, NULL::{text}, NULL::{int8},
      (extract(epoch FROM expires_at {-} {now}) {*} 1000)::{int8}
    FROM {lease}
    WHERE name {=} $1::{text} AND expires_at {>} {now} AND pg_catalog.isfinite(expires_at)
      AND (owner IS NULL OR owner {<>} $2::{text}) AND NOT EXISTS (SELECT FROM u)
)sql";

// Only i waits: for insertions of the same names, in the order of names, and not for long.
constexpr std::string_view acquire_many = R"sql(
  WITH q AS MATERIALIZED (
    SELECT * FROM ROWS FROM (pg_catalog.unnest($1::{text}[]), pg_catalog.unnest($2::{text}[]),
      pg_catalog.unnest($3::{text}[]), pg_catalog.unnest($4::{int8}[])) AS q (name, owner, holder, lease_ms)),
  f AS MATERIALIZED (
    SELECT l.name FROM q CROSS JOIN LATERAL (
      SELECT l.name FROM {lease} AS l WHERE l.name {=} q.name AND (l.expires_at {<=} {now} OR l.owner {=} q.owner)
      FOR NO KEY UPDATE SKIP LOCKED) AS l
    LIMIT pg_catalog.cardinality($1::{text}[])),
  u AS (
    UPDATE {lease} AS l SET owner = q.owner, holder = q.holder, expires_at = {now} {+} (q.lease_ms::{float8} {*} {ms}),
      token = CASE WHEN l.owner {=} q.owner THEN l.token ELSE greatest(l.token {+} 1, {us}) END
    FROM q JOIN f ON f.name {=} q.name
    WHERE l.name {=} q.name AND (l.expires_at {<=} {now} OR l.owner {=} q.owner)
    RETURNING l.owner, l.token{commit}{announce_l}),
  i AS (
    INSERT INTO {lease} (name, owner, holder, token, expires_at)
    SELECT q.name, q.owner, CASE WHEN {brief} THEN q.holder END, {us}, {now} {+} (q.lease_ms::{float8} {*} {ms}) FROM q
    WHERE NOT EXISTS (SELECT FROM {lease} AS l WHERE l.name {=} q.name OFFSET 0)
    ORDER BY q.name COLLATE {C}
    ON CONFLICT (name) DO NOTHING RETURNING owner, token{commit})
  SELECT owner, token, NULL::{text}, NULL::{int8}, NULL::{int8} FROM u
  UNION ALL SELECT owner, token, NULL::{text}, NULL::{int8}, NULL::{int8} FROM i
  UNION ALL SELECT q.owner, NULL::{int8}, NULL::{text}, NULL::{int8},
      (extract(epoch FROM l.expires_at {-} {now}) {*} 1000)::{int8}
    FROM {each}
    WHERE l.expires_at {>} {now} AND pg_catalog.isfinite(l.expires_at)
      AND (l.owner IS NULL OR l.owner {<>} q.owner) AND NOT EXISTS (SELECT FROM u WHERE u.owner {=} q.owner)
)sql";

constexpr std::string_view renew_many = R"sql(
  WITH q AS MATERIALIZED (
    SELECT * FROM ROWS FROM (pg_catalog.unnest($1::{text}[]), pg_catalog.unnest($2::{text}[]),
      pg_catalog.unnest($3::{int8}[])) AS q (name, owner, lease_ms)),
  f AS MATERIALIZED (
    SELECT l.name FROM q CROSS JOIN LATERAL (
      SELECT l.name FROM {lease} AS l WHERE l.name {=} q.name AND l.owner {=} q.owner AND l.expires_at {>} {now}
      FOR NO KEY UPDATE SKIP LOCKED) AS l
    LIMIT pg_catalog.cardinality($1::{text}[])),
  u AS (
    UPDATE {lease} AS l SET expires_at = {now} {+} (q.lease_ms::{float8} {*} {ms})
    FROM q JOIN f ON f.name {=} q.name
    WHERE l.name {=} q.name AND l.owner {=} q.owner AND l.expires_at {>} {now}
    RETURNING l.owner{commit})
  SELECT owner, true FROM u
  UNION ALL SELECT q.owner, false FROM {each}
    WHERE l.owner {=} q.owner AND l.expires_at {>} {now} AND NOT EXISTS (SELECT FROM u WHERE u.owner {=} q.owner)
)sql";

// Not DELETE: that would lose the token. The mark stays, and expires by itself. Of an owner that gave up it is not
// known what becomes of the row while another client has locked it, which may be its own acquire over an earlier
// connection.
constexpr std::string_view release = R"sql(
  WITH f AS MATERIALIZED (
    SELECT name, owner, {first} AS next FROM {lease}
    WHERE name {=} $1::{text} AND (owner {=} $2::{text} OR $3::{int8} {=} 1)
    FOR NO KEY UPDATE SKIP LOCKED),
  r AS (
    UPDATE {lease} SET owner = NULL, expires_at = '-infinity'{pop}
    WHERE name {=} (SELECT f.name FROM f) AND owner {=} $2::{text}
    RETURNING name, waiting_until, (SELECT f.next FROM f) AS next{commit})
  SELECT $2::{text}, true, {notify} FROM r
  UNION ALL SELECT $2::{text}, false, NULL::{text} FROM {lease}
    WHERE name {=} $1::{text} AND (owner {=} $2::{text} OR $3::{int8} {=} 1) AND NOT EXISTS (SELECT FROM r)
      AND NOT EXISTS (SELECT FROM f WHERE coalesce(f.owner {<>} $2::{text}, true))
)sql";

constexpr std::string_view release_many = R"sql(
  WITH q AS MATERIALIZED (
    SELECT * FROM ROWS FROM (pg_catalog.unnest($1::{text}[]), pg_catalog.unnest($2::{text}[]),
      pg_catalog.unnest($3::{int8}[])) AS q (name, owner, gave_up)),
  f AS MATERIALIZED (
    SELECT l.name, l.owner, l.next FROM q CROSS JOIN LATERAL (
      SELECT l.name, l.owner, {first} AS next FROM {lease} AS l
      WHERE l.name {=} q.name AND (l.owner {=} q.owner OR q.gave_up {=} 1)
      FOR NO KEY UPDATE SKIP LOCKED) AS l
    LIMIT pg_catalog.cardinality($1::{text}[])),
  r AS (
    UPDATE {lease} AS l SET owner = NULL, expires_at = '-infinity'{pop}
    FROM q JOIN f ON f.name {=} q.name
    WHERE l.name {=} q.name AND l.owner {=} q.owner
    RETURNING l.name, q.owner, l.waiting_until, f.next{commit})
  SELECT owner, true, {notify} FROM r
  UNION ALL SELECT q.owner, false, NULL::{text} FROM {each}
    WHERE (l.owner {=} q.owner OR q.gave_up {=} 1) AND NOT EXISTS (SELECT FROM r WHERE r.owner {=} q.owner)
      AND NOT EXISTS (SELECT FROM f WHERE f.name {=} q.name AND coalesce(f.owner {<>} q.owner, true))
)sql";

constexpr std::string_view look = R"sql(
  SELECT name, expires_at {>} {now}, CASE WHEN expires_at {>} {now} THEN holder ELSE '' END, token,
    CASE WHEN expires_at {>} {now} AND pg_catalog.isfinite(expires_at)
      THEN greatest((extract(epoch FROM expires_at {-} {now}) {*} 1000)::{int8}, 0) END,
    NULL::{int8}
  FROM {lease}
)sql";

constexpr std::string_view break_lock = R"sql(
  WITH f AS MATERIALIZED (
    SELECT name, NULL::{text} AS next FROM {lease} WHERE name {=} $1::{text} AND expires_at {>} {now}
    FOR NO KEY UPDATE SKIP LOCKED),
  r AS (
    UPDATE {lease} SET owner = NULL, expires_at = '-infinity'
    WHERE name {=} (SELECT f.name FROM f) AND expires_at {>} {now}
    RETURNING name, waiting_until, (SELECT f.next FROM f) AS next{commit})
  SELECT true, {notify} FROM r
  UNION ALL SELECT false, NULL::{text} FROM {lease}
    WHERE name {=} $1::{text} AND expires_at {>} {now} AND NOT EXISTS (SELECT FROM r)
)sql";

// The mark outlives the lease that was waited for, so each waiter has looked by the time that the row goes.
constexpr std::string_view forget = R"sql(
  WITH f AS MATERIALIZED (
    SELECT name FROM {lease}
    WHERE ($1::{text} {=} '' OR name {=} $1::{text}) AND expires_at {<=} {now} AND waiting_until {<=} {now}
      AND token {old}
    LIMIT $3::{int8} FOR UPDATE SKIP LOCKED),
  d AS (
    DELETE FROM {lease} WHERE name {=} ANY (ARRAY(SELECT f.name FROM f)) RETURNING name{commit})
  SELECT name FROM d
)sql";

}  // namespace

RowStatements table_statements(std::string_view schema, Durability durability, Queue queue, LockKind kind) {
  return row_statements({.table = "lease",
                         .held = "l.expires_at {>} {now}",
                         .acquire = acquire,
                         .acquire_many = acquire_many,
                         .channel = "$5",
                         .renew_many = renew_many,
                         .release = release,
                         .release_many = release_many,
                         .look = look,
                         .break_lock = break_lock,
                         .forget = forget},
                        schema, durability, queue, kind);
}

}  // namespace dlock::postgres
