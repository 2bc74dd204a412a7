#include "backends/postgres/sql/row_texts.hpp"

#include <string>

#include "backends/postgres/schema/layout.hpp"
#include "backends/postgres/sql/identifier.hpp"

namespace dlock::postgres {

namespace {

// The row of each name that is asked about.
constexpr std::string_view each =
    "q CROSS JOIN LATERAL (SELECT * FROM {table} AS l WHERE l.name {=} q.name OFFSET 0) AS l";

constexpr std::string_view notify = R"sql(
  CASE WHEN {channel}::{text} {<>} '' AND waiting_until {>} {now}
    THEN pg_catalog.pg_notify({channel}::{text}, coalesce(next {||} pg_catalog.chr(9), '') {||} name)::{text} END
)sql";

// Those that were there when the last mark expired wait no longer.
constexpr std::string_view enqueued = R"sql(
  , waiters = CASE WHEN l.waiting_until {<=} {now} THEN ARRAY[$4::{text}] WHEN {queues} THEN l.waiters
    ELSE pg_catalog.array_append(l.waiters, $4::{text}) END
)sql";

// Or there is such a crowd that one more does not matter.
constexpr std::string_view queues = "($4::{text} {=} ANY (l.waiters) OR pg_catalog.cardinality(l.waiters) {>=} 64)";

constexpr std::string_view announce = R"sql(
  , CASE WHEN {channel}::{text} {<>} '' AND {l}waiting_until {>} {now}
    THEN pg_catalog.pg_notify({channel}::{text}, {l}name)::{text} END
)sql";

// Of what m does not mark, the other half looks at the row as it was when the statement began. If that was marked for
// long enough, every release since then has notified.
constexpr std::string_view mark_many = R"sql(
  WITH q AS MATERIALIZED (SELECT * FROM pg_catalog.unnest($1::{text}[]) AS q (name)),
  f AS MATERIALIZED (
    SELECT l.name FROM q CROSS JOIN LATERAL (
      SELECT l.name FROM {table} AS l WHERE l.name {=} q.name AND {held}
        AND (l.waiting_until {<} ({now} {+} ($3::{int8}::{float8} {*} {ms})) OR NOT {queues})
      FOR NO KEY UPDATE SKIP LOCKED) AS l
    LIMIT pg_catalog.cardinality($1::{text}[])),
  m AS (
    UPDATE {table} AS l SET waiting_until = {now} {+} ($2::{int8}::{float8} {*} {ms}){enqueue}
    FROM q JOIN f ON f.name {=} q.name WHERE l.name {=} q.name AND {held}
    RETURNING l.name, pg_catalog.set_config('synchronous_commit', 'off', true))
  SELECT name, true FROM m
  UNION ALL SELECT l.name,
      {held} AND l.waiting_until {>=} ({now} {+} ($3::{int8}::{float8} {*} {ms})) AND {queues}
    FROM {each}
    WHERE NOT EXISTS (SELECT FROM m WHERE m.name {=} q.name)
)sql";

constexpr std::string_view leave_many = R"sql(
  WITH q AS MATERIALIZED (SELECT * FROM pg_catalog.unnest($1::{text}[]) AS q (name)),
  f AS MATERIALIZED (
    SELECT l.name FROM q CROSS JOIN LATERAL (
      SELECT l.name FROM {table} AS l WHERE l.name {=} q.name AND $2::{text} {=} ANY (l.waiters)
      FOR NO KEY UPDATE SKIP LOCKED) AS l
    LIMIT pg_catalog.cardinality($1::{text}[]))
  UPDATE {table} AS l SET waiters = pg_catalog.array_remove(l.waiters, $2::{text})
  FROM q JOIN f ON f.name {=} q.name WHERE l.name {=} q.name
  RETURNING pg_catalog.set_config('synchronous_commit', 'off', true)
)sql";

}  // namespace

RowStatements row_statements(const RowTexts& texts, std::string_view schema, Durability durability, Queue queue,
                             LockKind kind) {
  Fillings fillings = {{texts.table, qualified(schema, table_of(texts.table, kind))}};
  const Fillings common = common_fillings(schema, durability);
  fillings.insert(fillings.end(), common.begin(), common.end());
  const bool is_there = queue == Queue::in_the_row;
  fillings.emplace_back("first", is_there ? "waiters[1]" : fill("NULL::{text}", {}));
  fillings.emplace_back("pop", is_there ? ", waiters = waiters[2:]" : "");
  fillings.emplace_back("queues", fill(is_there ? queues : "($4::{text} IS NOT NULL)", {}));
  fillings.emplace_back("enqueue", is_there ? fill(enqueued, fillings) : "");
  fillings.emplace_back("table", fillings.front().second);
  fillings.emplace_back("each", fill(each, fillings));
  fillings.emplace_back("used", fill(texts.used, fillings));
  // Others than those who want a lock look at it, too, and want to hear of a grant: so it is marked even while free.
  fillings.emplace_back("held", kind == LockKind::lock ? fill(texts.held, fillings) : "true");
  const auto announced = [&](const std::string& l) {
    Fillings all = fillings;
    all.emplace_back("channel", texts.channel);
    all.emplace_back("l", l);
    return kind == LockKind::election ? fill(announce, all) : std::string();
  };
  const std::string announcement = announced("");
  const std::string announcement_l = announced("l.");
  fillings.emplace_back("announce", announcement);
  fillings.emplace_back("announce_l", announcement_l);
  const auto word = [start = table_of(texts.table, kind) + "."](const char* of) { return start + of; };
  const auto statement = [&](std::string_view text, const char* of) {
    return Statement{fill(text, fillings), word(of)};
  };
  const auto notifying = [&](std::string_view text, const std::string& channel, const char* of) {
    Fillings all = fillings;
    all.emplace_back("channel", channel);
    all.emplace_back("notify", fill(notify, all));
    return Statement{fill(text, all), word(of)};
  };
  const std::string look(texts.look);
  return {
      .change = statement(texts.change, "change"),
      .acquire = statement(texts.acquire, "acquire"),
      .acquire_many = statement(texts.acquire_many, "acquire_many"),
      .renew_many = statement(texts.renew_many, "renew_many"),
      .release = notifying(texts.release, "$4", "release"),
      .release_many = notifying(texts.release_many, "$4", "release_many"),
      .mark_many = statement(mark_many, "mark_many"),
      .leave_many = statement(leave_many, "leave_many"),
      .inspect = statement(look + "WHERE name {=} $1::{text}", "inspect"),
      .list = statement(look + "ORDER BY name LIMIT $1::{int8}", "list"),
      .break_lock = notifying(texts.break_lock, "$2", "break_lock"),
      .forget = statement(texts.forget, "forget"),
  };
}

}  // namespace dlock::postgres
