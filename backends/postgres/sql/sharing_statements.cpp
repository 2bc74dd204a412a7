// strategy=table, for locks of several holders: a row with all holders. A read-write lock is a semaphore with more
// permits than there can be readers: a reader takes one permit, a writer all.
#include "backends/postgres/sql/row_template.hpp"

namespace dlock::postgres {

namespace {

// "holders" is an object that maps an owner's id to
//   [microseconds since 1970 when its lease expires, token, permits it has, holder]
// A statement locks a row, reads its newest version, and computes the new version from that. A count of rows for each
// holder would use a snapshot, which is older than the wait for a statement that added one.
//
//   q requests, g requests by name, f rows that may change, locked in the order of names, t these and new rows, s rows
//   without expired and released holders, a requests that could be granted alone, w grants, b the writer that keeps
//   readers out from now on, n the new rows
//
// s.holders contains the renewals. A request that finds no room in the row of when the statement began does not lock
// the row, so it writes nothing. A writer asks again after half of its mark, by its own clock, and the statement renews
// the mark once a quarter is over. A request that gave up (what: -1) waits for the row in any case: its own acquire,
// sent over an earlier connection, may have locked the row. {used}: the permits of row l that are taken.
constexpr std::string_view change = R"sql(
  WITH q AS MATERIALIZED (
    SELECT * FROM ROWS FROM (pg_catalog.unnest($1::{text}[]), pg_catalog.unnest($2::{text}[]),
      pg_catalog.unnest($3::{int8}[]), pg_catalog.unnest($4::{int8}[]), pg_catalog.unnest($5::{text}[]),
      pg_catalog.unnest($6::{int8}[]), pg_catalog.unnest($7::{int8}[]), pg_catalog.unnest($8::{int8}[]))
      WITH ORDINALITY AS q (name, owner, what, lease_ms, holder, weight, permits, mark_ms, i)
    WHERE (SELECT {brief})),
  g AS MATERIALIZED (
    SELECT q.name, pg_catalog.array_agg(q.owner) AS owners,
      coalesce(pg_catalog.array_agg(q.owner) FILTER (WHERE q.what {<=} 0), ARRAY[]::{text}[]) AS released,
      pg_catalog.bool_or(q.what {<} 0) AS gave_up,
      coalesce(pg_catalog.jsonb_object_agg(q.owner, q.lease_ms) FILTER (WHERE q.what {>} 0),
        pg_catalog.jsonb_build_object()) AS leases,
      pg_catalog.min(q.weight) FILTER (WHERE q.what {=} 2) AS least,
      coalesce(pg_catalog.array_agg(q.permits ORDER BY q.i) FILTER (WHERE q.what {=} 2), ARRAY[]::{int8}[]) AS permits,
      coalesce(pg_catalog.bool_or(q.weight {=} q.permits) FILTER (WHERE q.what {=} 2), false) AS alone,
      pg_catalog.max(q.mark_ms) AS mark_ms
    FROM q GROUP BY q.name),
  f AS MATERIALIZED (
    SELECT l.name, l.token, l.permits, l.holders, l.writer, l.marked_until
    FROM (SELECT * FROM g ORDER BY g.name COLLATE {C} OFFSET 0) AS g CROSS JOIN LATERAL (
      SELECT l.name, l.token, l.permits, l.holders, l.writer, l.marked_until FROM {table} AS l
      WHERE l.name {=} g.name AND (l.holders {?|} g.owners OR l.writer {=} ANY (g.released) OR g.gave_up
        OR (g.least IS NOT NULL AND (g.alone OR l.marked_until {<=} {now})
          AND CASE WHEN {used} {=} 0 THEN true ELSE l.permits {=} ANY (g.permits) AND ({used} {+} g.least) {<=} l.permits END)
        OR (g.mark_ms {>} 0 AND (l.marked_until {<=} {now} OR (l.writer {=} ANY (g.owners)
          AND l.marked_until {<} ({now} {+} ((g.mark_ms::{float8} {*} 0.75::{float8}) {*} {ms}))))))
      FOR NO KEY UPDATE) AS l
    LIMIT pg_catalog.cardinality($1::{text}[])),
  t AS MATERIALIZED (
    SELECT *, false AS fresh, {now} AS now, {us} AS us FROM f
    UNION ALL SELECT g.name, 0::{int8}, 0::{int8}, pg_catalog.jsonb_build_object(), NULL::{text},
      '-infinity'::{timestamptz}, true, {now}, {us}
    FROM g WHERE g.least IS NOT NULL AND NOT EXISTS (SELECT FROM {table} AS l WHERE l.name {=} g.name OFFSET 0)),
  s AS MATERIALIZED (
    SELECT t.name, t.token, t.holders AS before, t.writer, t.marked_until, t.fresh, t.now, t.us, g.released,
      coalesce(e.holders, pg_catalog.jsonb_build_object()) AS holders, coalesce(e.used, 0) AS used,
      coalesce(e.gone, false) AS gone,
      CASE WHEN e.used {>} 0 THEN t.permits ELSE coalesce(g.permits[1], t.permits) END AS permits
    FROM t JOIN g ON g.name {=} t.name CROSS JOIN LATERAL (
      SELECT pg_catalog.jsonb_object_agg(e.key, CASE WHEN g.leases {?} e.key
          THEN pg_catalog.jsonb_set(e.value, ARRAY['0'],
            pg_catalog.to_jsonb(t.us {+} ((g.leases {->>} e.key)::{int8} {*} 1000))) ELSE e.value END)
          FILTER (WHERE e.stays) AS holders,
        pg_catalog.sum((e.value {->>} 2)::{int8}) FILTER (WHERE e.stays)::{int8} AS used,
        pg_catalog.bool_or(NOT e.stays) AS gone
      FROM (SELECT e.key, e.value, (e.value {->>} 0)::{int8} {>} t.us AND NOT (e.key {=} ANY (g.released)) AS stays
        FROM pg_catalog.jsonb_each(t.holders) AS e (key, value)) AS e) AS e),
  a AS MATERIALIZED (
    SELECT q.i, q.name, q.owner, q.lease_ms, q.holder, q.weight, s.us, s.token, s.permits {-} s.used AS room,
      q.weight {=} s.permits AS alone,
      pg_catalog.first_value(q.weight {=} s.permits) OVER (PARTITION BY q.name ORDER BY q.i) AS first_alone,
      pg_catalog.row_number() OVER (PARTITION BY q.name, q.weight {=} s.permits ORDER BY q.i) AS place
    FROM q JOIN s ON s.name {=} q.name
    WHERE q.what {=} 2 AND q.permits {=} s.permits AND (s.used {+} q.weight) {<=} s.permits
      AND (q.weight {=} s.permits OR s.marked_until {<=} s.now)
      AND NOT (s.holders {?} q.owner) AND NOT (q.owner {=} ANY (s.released))),
  w AS MATERIALIZED (
    SELECT *, (greatest(a.token {+} 1, a.us) {+} a.place) {-} 1 AS fence FROM a
    WHERE a.alone {=} a.first_alone AND a.place {<=} CASE WHEN a.alone THEN 1 ELSE a.room END),
  b AS MATERIALIZED (
    SELECT DISTINCT ON (q.name) q.name, q.owner, q.mark_ms FROM q JOIN s ON s.name {=} q.name
    WHERE q.mark_ms {>} 0 AND q.permits {=} s.permits AND NOT (s.holders {?} q.owner)
      AND NOT (q.owner {=} ANY (s.released)) AND NOT EXISTS (SELECT FROM w WHERE w.i {=} q.i)
    ORDER BY q.name, coalesce(q.owner {=} s.writer, false) DESC, q.i),
  n AS MATERIALIZED (
    SELECT s.name, s.fresh, s.before, s.permits, coalesce(w.fence, s.token) AS token,
      s.holders {||} coalesce(w.holders, pg_catalog.jsonb_build_object()) AS holders,
      CASE WHEN k.keeps AND coalesce(b.owner {<>} s.writer, true) THEN s.writer ELSE b.owner END AS writer,
      CASE WHEN k.keeps AND coalesce(b.owner {<>} s.writer, true) THEN s.marked_until
        ELSE coalesce(s.now {+} (b.mark_ms::{float8} {*} {ms}), '-infinity') END AS marked_until,
      s.gone OR (s.marked_until {>} s.now AND NOT k.keeps) AS freed
    FROM s LEFT JOIN b ON b.name {=} s.name
      LEFT JOIN (
        SELECT w.name, pg_catalog.max(w.fence) AS fence, pg_catalog.jsonb_object_agg(w.owner,
          pg_catalog.jsonb_build_array(w.us {+} (w.lease_ms {*} 1000), w.fence, w.weight, w.holder)) AS holders
        FROM w GROUP BY w.name) AS w ON w.name {=} s.name
      CROSS JOIN LATERAL (
        SELECT s.marked_until {>} s.now AND NOT coalesce(s.writer {=} ANY (s.released), true)
          AND NOT coalesce(w.holders {?} s.writer, false) AS keeps) AS k),
  c AS (
    UPDATE {table} AS l SET token = n.token, permits = n.permits, holders = n.holders, writer = n.writer,
      marked_until = n.marked_until
    FROM n WHERE l.name {=} ANY (ARRAY(SELECT n.name FROM n WHERE NOT n.fresh)) AND l.name {=} n.name
    RETURNING CASE WHEN $9::{text} {<>} '' AND n.freed AND l.waiting_until {>} {now}
      THEN pg_catalog.pg_notify($9::{text}, l.name)::{text} END{commit}),
  i AS (
    INSERT INTO {table} (name, token, permits, holders, writer, marked_until)
    SELECT n.name, n.token, n.permits, n.holders, n.writer, n.marked_until FROM n WHERE n.fresh ORDER BY n.name COLLATE {C}
    ON CONFLICT (name) DO NOTHING RETURNING name{commit})
  SELECT q.i, r.done, CASE WHEN r.done THEN (n.holders {->} q.owner {->>} 1)::{int8} END,
    CASE WHEN q.what {=} 2 AND NOT r.done AND q.permits {<>} r.permits AND r.first IS NOT NULL THEN r.permits END,
    CASE WHEN q.what {=} 2 AND NOT r.done THEN greatest((least(r.first, CASE WHEN q.weight {<>} q.permits
        AND r.marked_until {>} {now} AND pg_catalog.isfinite(r.marked_until) THEN (extract(epoch FROM r.marked_until) {*} 1000000)::{int8} END) {-} {us})
      {/} 1000, 0) END
  FROM q LEFT JOIN n ON n.name {=} q.name
    LEFT JOIN LATERAL (SELECT * FROM {table} AS l WHERE l.name {=} q.name OFFSET 0) AS l ON n.name IS NULL
    CROSS JOIN LATERAL (
      SELECT CASE WHEN n.fresh AND NOT EXISTS (SELECT FROM i WHERE i.name {=} q.name) THEN NULL
          WHEN q.what {<=} 0 THEN coalesce(n.before {?} q.owner, false)
          ELSE coalesce(n.holders {?} q.owner, false) END AS done,
        coalesce(n.permits, l.permits) AS permits, coalesce(n.marked_until, l.marked_until) AS marked_until,
        CASE WHEN q.what {=} 2 THEN (SELECT pg_catalog.min((e.value {->>} 0)::{int8})
          FROM pg_catalog.jsonb_each(coalesce(n.holders, l.holders)) AS e (key, value)
          WHERE (e.value {->>} 0)::{int8} {>} {us}) END AS first) AS r
)sql";

// Permits of holders whose leases have not expired.
constexpr std::string_view used =
    "(SELECT coalesce(pg_catalog.sum((e.value {->>} 2)::{int8}), 0)::{int8} FROM pg_catalog.jsonb_each(l.holders) AS e "
    "(key, value) WHERE (e.value {->>} 0)::{int8} {>} {us})";

// A row for each holder; without holders, one.
constexpr std::string_view look = R"sql(
  SELECT l.name, e.value IS NOT NULL, coalesce(e.value {->>} 3, ''), l.token,
    greatest(((e.value {->>} 0)::{int8} {-} {us}) {/} 1000, 0), NULL::{int8}, l.permits, (e.value {->>} 2)::{int8},
    (e.value {->>} 1)::{int8}
  FROM {table} AS l LEFT JOIN LATERAL (
    SELECT e.value FROM pg_catalog.jsonb_each(l.holders) AS e (key, value)
    WHERE (e.value {->>} 0)::{int8} {>} {us}) AS e ON true
)sql";

}  // namespace

RowStatements sharing_statements(std::string_view schema, Durability durability, LockKind kind) {
  return row_statements_of({.table = "lease",
                            .held = "{used} {>} 0",
                            .freeing = "holders = pg_catalog.jsonb_build_object()",
                            .look = look,
                            .in_use = "{used} {>} 0 OR l.marked_until {>} {now}",
                            .change = change,
                            .used = used},
                           schema, durability, kind);
}

}  // namespace dlock::postgres
