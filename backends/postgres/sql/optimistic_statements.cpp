// strategy=optimistic: a row with owner and version. No clock of the server decides who has a lock; it only helps the
// token, and says for how long a mark is good.
#include "backends/postgres/sql/row_texts.hpp"

namespace dlock::postgres {

namespace {

// In each of them f locks the rows that may be changed and passes over those that another client has locked; see
// table_statements.cpp.
constexpr std::string_view acquire = R"sql(
  WITH f AS MATERIALIZED (
    SELECT name FROM {optimistic}
    WHERE name {=} $1::{text}
      AND (owner IS NULL OR owner {=} $2::{text} OR (owner {=} $5::{text} AND version {=} $6::{int8}))
    FOR NO KEY UPDATE SKIP LOCKED),
  u AS (
    UPDATE {optimistic} SET owner = $2::{text}, holder = $3::{text}, lease_ms = $4::{int8}, version = version {+} 1,
      token = CASE WHEN owner {=} $2::{text} THEN token ELSE greatest(token {+} 1, {us}) END
    WHERE name {=} (SELECT f.name FROM f)
      AND (owner IS NULL OR owner {=} $2::{text} OR (owner {=} $5::{text} AND version {=} $6::{int8}))
    RETURNING token{commit}{announce}),
  i AS (
    INSERT INTO {optimistic} (name, owner, holder, version, token, lease_ms)
    SELECT $1::{text}, $2::{text}, CASE WHEN {brief} THEN $3::{text} END, 1, {us}, $4::{int8}
    WHERE NOT EXISTS (SELECT FROM {optimistic} WHERE name {=} $1::{text})
    ON CONFLICT (name) DO NOTHING RETURNING token{commit})
  SELECT $2::{text}, token, NULL::{text}, NULL::{int8}, NULL::{int8} FROM u
  UNION ALL SELECT $2::{text}, token, NULL::{text}, NULL::{int8}, NULL::{int8} FROM i
  UNION ALL SELECT $2::{text}, NULL::{int8}, owner, version, lease_ms FROM {optimistic}
    WHERE name {=} $1::{text} AND owner {<>} $2::{text} AND NOT EXISTS (SELECT FROM u)
)sql";

constexpr std::string_view acquire_many = R"sql(
  WITH q AS MATERIALIZED (
    SELECT * FROM ROWS FROM (pg_catalog.unnest($1::{text}[]), pg_catalog.unnest($2::{text}[]),
      pg_catalog.unnest($3::{text}[]), pg_catalog.unnest($4::{int8}[]), pg_catalog.unnest($5::{text}[]),
      pg_catalog.unnest($6::{int8}[])) AS q (name, owner, holder, lease_ms, seen_owner, seen_version)),
  f AS MATERIALIZED (
    SELECT l.name FROM q CROSS JOIN LATERAL (
      SELECT l.name FROM {optimistic} AS l WHERE l.name {=} q.name
        AND (l.owner IS NULL OR l.owner {=} q.owner OR (l.owner {=} q.seen_owner AND l.version {=} q.seen_version))
      FOR NO KEY UPDATE SKIP LOCKED) AS l
    LIMIT pg_catalog.cardinality($1::{text}[])),
  u AS (
    UPDATE {optimistic} AS l SET owner = q.owner, holder = q.holder, lease_ms = q.lease_ms, version = l.version {+} 1,
      token = CASE WHEN l.owner {=} q.owner THEN l.token ELSE greatest(l.token {+} 1, {us}) END
    FROM q JOIN f ON f.name {=} q.name
    WHERE l.name {=} q.name
      AND (l.owner IS NULL OR l.owner {=} q.owner OR (l.owner {=} q.seen_owner AND l.version {=} q.seen_version))
    RETURNING l.owner, l.token{commit}{announce_l}),
  i AS (
    INSERT INTO {optimistic} (name, owner, holder, version, token, lease_ms)
    SELECT q.name, q.owner, CASE WHEN {brief} THEN q.holder END, 1, {us}, q.lease_ms FROM q
    WHERE NOT EXISTS (SELECT FROM {optimistic} AS l WHERE l.name {=} q.name OFFSET 0)
    ORDER BY q.name COLLATE {C}
    ON CONFLICT (name) DO NOTHING RETURNING owner, token{commit})
  SELECT owner, token, NULL::{text}, NULL::{int8}, NULL::{int8} FROM u
  UNION ALL SELECT owner, token, NULL::{text}, NULL::{int8}, NULL::{int8} FROM i
  UNION ALL SELECT q.owner, NULL::{int8}, l.owner, l.version, l.lease_ms
    FROM {each}
    WHERE l.owner {<>} q.owner AND NOT EXISTS (SELECT FROM u WHERE u.owner {=} q.owner)
)sql";

constexpr std::string_view renew_many = R"sql(
  WITH q AS MATERIALIZED (
    SELECT * FROM ROWS FROM (pg_catalog.unnest($1::{text}[]), pg_catalog.unnest($2::{text}[]),
      pg_catalog.unnest($3::{int8}[])) AS q (name, owner, lease_ms)),
  f AS MATERIALIZED (
    SELECT l.name FROM q CROSS JOIN LATERAL (
      SELECT l.name FROM {optimistic} AS l WHERE l.name {=} q.name AND l.owner {=} q.owner
      FOR NO KEY UPDATE SKIP LOCKED) AS l
    LIMIT pg_catalog.cardinality($1::{text}[])),
  u AS (
    UPDATE {optimistic} AS l SET version = l.version {+} 1, lease_ms = q.lease_ms
    FROM q JOIN f ON f.name {=} q.name
    WHERE l.name {=} q.name AND l.owner {=} q.owner
    RETURNING l.owner{commit})
  SELECT owner, true FROM u
  UNION ALL SELECT q.owner, false FROM {each}
    WHERE l.owner {=} q.owner AND NOT EXISTS (SELECT FROM u WHERE u.owner {=} q.owner)
)sql";

constexpr std::string_view release = R"sql(
  WITH f AS MATERIALIZED (
    SELECT name, owner, {first} AS next FROM {optimistic}
    WHERE name {=} $1::{text} AND (owner {=} $2::{text} OR $3::{int8} {=} 1)
    FOR NO KEY UPDATE SKIP LOCKED),
  r AS (
    UPDATE {optimistic} SET owner = NULL, version = version {+} 1{pop}
    WHERE name {=} (SELECT f.name FROM f) AND owner {=} $2::{text}
    RETURNING name, waiting_until, (SELECT f.next FROM f) AS next{commit})
  SELECT $2::{text}, true, {notify} FROM r
  UNION ALL SELECT $2::{text}, false, NULL::{text} FROM {optimistic}
    WHERE name {=} $1::{text} AND (owner {=} $2::{text} OR $3::{int8} {=} 1) AND NOT EXISTS (SELECT FROM r)
      AND NOT EXISTS (SELECT FROM f WHERE coalesce(f.owner {<>} $2::{text}, true))
)sql";

constexpr std::string_view release_many = R"sql(
  WITH q AS MATERIALIZED (
    SELECT * FROM ROWS FROM (pg_catalog.unnest($1::{text}[]), pg_catalog.unnest($2::{text}[]),
      pg_catalog.unnest($3::{int8}[])) AS q (name, owner, gave_up)),
  f AS MATERIALIZED (
    SELECT l.name, l.owner, l.next FROM q CROSS JOIN LATERAL (
      SELECT l.name, l.owner, {first} AS next FROM {optimistic} AS l
      WHERE l.name {=} q.name AND (l.owner {=} q.owner OR q.gave_up {=} 1)
      FOR NO KEY UPDATE SKIP LOCKED) AS l
    LIMIT pg_catalog.cardinality($1::{text}[])),
  r AS (
    UPDATE {optimistic} AS l SET owner = NULL, version = l.version {+} 1{pop}
    FROM q JOIN f ON f.name {=} q.name
    WHERE l.name {=} q.name AND l.owner {=} q.owner
    RETURNING l.name, q.owner, l.waiting_until, f.next{commit})
  SELECT owner, true, {notify} FROM r
  UNION ALL SELECT q.owner, false, NULL::{text} FROM {each}
    WHERE (l.owner {=} q.owner OR q.gave_up {=} 1) AND NOT EXISTS (SELECT FROM r WHERE r.owner {=} q.owner)
      AND NOT EXISTS (SELECT FROM f WHERE f.name {=} q.name AND coalesce(f.owner {<>} q.owner, true))
)sql";

constexpr std::string_view look = R"sql(
  SELECT name, owner IS NOT NULL, CASE WHEN owner IS NOT NULL THEN holder ELSE '' END, token, NULL::{int8}, NULL::{int8}
  FROM {optimistic}
)sql";

constexpr std::string_view break_lock = R"sql(
  WITH f AS MATERIALIZED (
    SELECT name, NULL::{text} AS next FROM {optimistic} WHERE name {=} $1::{text} AND owner IS NOT NULL
    FOR NO KEY UPDATE SKIP LOCKED),
  r AS (
    UPDATE {optimistic} SET owner = NULL, version = version {+} 1
    WHERE name {=} (SELECT f.name FROM f) AND owner IS NOT NULL
    RETURNING name, waiting_until, (SELECT f.next FROM f) AS next{commit})
  SELECT true, {notify} FROM r
  UNION ALL SELECT false, NULL::{text} FROM {optimistic}
    WHERE name {=} $1::{text} AND owner IS NOT NULL AND NOT EXISTS (SELECT FROM r)
)sql";

// A row whose holder has died has an owner, until a client takes the lock over or breaks it.
constexpr std::string_view forget = R"sql(
  WITH f AS MATERIALIZED (
    SELECT name FROM {optimistic}
    WHERE ($1::{text} {=} '' OR name {=} $1::{text}) AND owner IS NULL AND waiting_until {<=} {now} AND token {old}
    LIMIT $3::{int8} FOR UPDATE SKIP LOCKED),
  d AS (
    DELETE FROM {optimistic} WHERE name {=} ANY (ARRAY(SELECT f.name FROM f)) RETURNING name{commit})
  SELECT name FROM d
)sql";

}  // namespace

RowStatements optimistic_statements(std::string_view schema, Durability durability, Queue queue, LockKind kind) {
  return row_statements({.table = "optimistic",
                         .held = "l.owner IS NOT NULL",
                         .acquire = acquire,
                         .acquire_many = acquire_many,
                         .channel = "$7",
                         .renew_many = renew_many,
                         .release = release,
                         .release_many = release_many,
                         .look = look,
                         .break_lock = break_lock,
                         .forget = forget},
                        schema, durability, queue, kind);
}

}  // namespace dlock::postgres
