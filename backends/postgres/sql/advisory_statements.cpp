// strategy=advisory: PostgreSQL's own locks, which know nothing but a number, and a row for token and holder.
#include <stdexcept>

#include "backends/postgres/schema/layout.hpp"
#include "backends/postgres/sql/identifier.hpp"
#include "backends/postgres/sql/sql_template.hpp"
#include "backends/postgres/sql/statements.hpp"

namespace dlock::postgres {

namespace {

using KeySpace = AdvisoryKey::KeySpace;

// How to get the lock is column "ok" of a, and {granted} says whether it was got. What follows happens after that, so
// that the order of tokens is that of the grants. The holder is alone with the row.
constexpr std::string_view fenced = R"sql(
  WITH {a}
  INSERT INTO {fence} AS f (name, key, space, pid, holder, token)
  SELECT $2::{text}, {key}, {space}, pg_catalog.pg_backend_pid(), $3::{text}, {us}{more} FROM a WHERE {granted}
  ON CONFLICT (name) DO UPDATE SET key = {key}, space = {space}, pid = pg_catalog.pg_backend_pid(),
    holder = $3::{text}, token = greatest(f.token {+} 1, {us}){more}
  RETURNING f.token, pg_catalog.pg_backend_pid(){end}
)sql";

constexpr std::string_view trying =
    "a AS MATERIALIZED (SELECT pg_catalog.pg_try_advisory_lock{shared}({arguments}) AS ok)";
constexpr std::string_view trying_in_transaction =
    "a AS MATERIALIZED (SELECT pg_catalog.pg_try_advisory_xact_lock({arguments}) AS ok)";

// A session that has a lock would get it again past those who wait for it.
constexpr std::string_view joining = R"sql(
  a AS MATERIALIZED (SELECT NOT EXISTS (
    SELECT FROM pg_catalog.pg_locks AS p
    WHERE p.locktype {=} 'advisory' AND NOT p.granted AND p.mode {=} 'ExclusiveLock' AND p.objsubid {=} {space}
      AND ((p.classid::{int8} {<<} 32) {|} p.objid::{int8}) {=} {key} AND p.database {=} (
        SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname {=} pg_catalog.current_database())) AS ok)
)sql";

// set_config() lasts to the end of the transaction, here of the statement. CASE makes it come first. The function
// answers nothing, which is '' as a text.
constexpr std::string_view waiting =
    "a AS MATERIALIZED (SELECT CASE WHEN pg_catalog.set_config('lock_timeout', $4::{text}, true) IS NOT NULL "
    "THEN pg_catalog.pg_advisory_lock{shared}({arguments})::{text} END AS ok)";

constexpr std::string_view waiting_in_transaction =
    "b AS MATERIALIZED (SELECT pg_catalog.current_setting('lock_timeout') AS before), "
    "a AS MATERIALIZED (SELECT b.before, "
    "CASE WHEN pg_catalog.set_config('lock_timeout', $4::{text}, true) IS NOT NULL "
    "THEN pg_catalog.pg_advisory_xact_lock({arguments})::{text} END AS ok FROM b)";

constexpr std::string_view restore =
    ", pg_catalog.set_config('lock_timeout', (SELECT before FROM a), true), "
    "CASE WHEN $5::{text} {<>} '' THEN pg_catalog.set_config('statement_timeout', $5::{text}, true) END";

// EXCLUDED is harmless for what the parameters say.
constexpr std::string_view try_many = R"sql(
  WITH a AS MATERIALIZED (
    SELECT q.name, q.holder, {key} AS key, pg_catalog.pg_try_advisory_lock({arguments}) AS ok
    FROM ROWS FROM (pg_catalog.unnest($1::{text}[]), pg_catalog.unnest($2::{text}[]), pg_catalog.unnest($3::{text}[]))
      AS q (key, name, holder))
  INSERT INTO {fence} AS f (name, key, space, pid, holder, token)
  SELECT a.name, a.key, {space}, pg_catalog.pg_backend_pid(), a.holder, {us} FROM a WHERE a.ok
  ORDER BY a.name COLLATE {C}
  ON CONFLICT (name) DO UPDATE SET key = excluded.key, space = {space}, pid = pg_catalog.pg_backend_pid(),
    holder = excluded.holder, token = greatest(f.token {+} 1, {us})
  RETURNING f.name, f.token, pg_catalog.pg_backend_pid(){commit}
)sql";

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

// pg_locks shows the halves of the key as unsigned numbers. A transaction that was prepared has no process.
constexpr std::string_view locks = R"sql(
  l AS MATERIALIZED (
    SELECT p.pid, p.granted, p.objsubid{mode}, (p.classid::{int8} {<<} 32) {|} p.objid::{int8} AS key, {gid} AS gid
    FROM pg_catalog.pg_locks AS p
    WHERE p.locktype {=} 'advisory' AND p.database {=} (
      SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname {=} pg_catalog.current_database()))
)sql";

// As the session says itself; of those who share a lock only that is known, so what it is for is left out.
constexpr std::string_view whose =
    "coalesce('prepared transaction ' {||} h.gid, pg_catalog.regexp_replace(s.application_name, "
    "'^([a-z]+[.])?dlock:{purpose}), '')";

// The row is about our last lease; another client may have the lock now.
constexpr std::string_view who = R"sql(
  h.key IS NOT NULL,
  CASE WHEN h.key IS NULL THEN '' WHEN h.pid {=} f.pid THEN f.holder ELSE {whose} END,
  CASE WHEN h.key IS NULL OR h.pid {=} f.pid THEN coalesce(f.token, 0) ELSE 0 END,
  NULL::{int8}
)sql";

// Of each of those who hold it: of two permits one, where others may have the other one; and its token, if that is
// known.
constexpr std::string_view how_held = R"sql(
  , 2, CASE WHEN h.shared THEN 1 ELSE 2 END, CASE WHEN h.pid {=} f.pid THEN f.token ELSE 0 END
)sql";

constexpr std::string_view inspect = R"sql(
  WITH {locks},
  k AS MATERIALIZED (SELECT key, pid, granted, gid{is_shared} FROM l WHERE key {=} {key} AND objsubid {=} {space})
  SELECT o.name, {who}, (SELECT pg_catalog.count(*) FROM k WHERE NOT granted){how}
  FROM (SELECT $2::{text} AS name) AS o
    LEFT JOIN (SELECT key, pid, gid{is_shared} FROM k WHERE granted{one}) AS h ON true
    LEFT JOIN {tokens} AS f ON f.name {=} o.name
    LEFT JOIN pg_catalog.pg_stat_activity AS s ON s.pid {=} h.pid
)sql";

// Locks need no tables of ours.
constexpr std::string_view no_tokens =
    "(SELECT ''::{text} AS name, 0 AS pid, ''::{text} AS holder, 0::{int8} AS token WHERE false)";

// Each of the parts is as large as it is, and not looked through for each name.
constexpr std::string_view list = R"sql(
  WITH {locks},
  h AS MATERIALIZED (
    SELECT{one_each} l.key, l.objsubid, l.pid, l.gid{is_shared} FROM l WHERE l.granted),
  w AS MATERIALIZED (
    SELECT l.key, l.objsubid, pg_catalog.count(*) AS waiters FROM l WHERE NOT l.granted GROUP BY l.key, l.objsubid)
  SELECT pg_catalog.split_part(f.name, pg_catalog.chr(9), 1), {who}, coalesce(w.waiters, 0){how}
  FROM {fence} AS f
    LEFT JOIN h ON h.key {=} f.key AND h.objsubid {=} f.space
    LEFT JOIN w ON w.key {=} f.key AND w.objsubid {=} f.space
    LEFT JOIN pg_catalog.pg_stat_activity AS s ON s.pid {=} h.pid
  ORDER BY f.name LIMIT $1::{int8}
)sql";

// As with for-update.
constexpr std::string_view break_lock = R"sql(
  WITH {locks}
  SELECT pg_catalog.pg_terminate_backend(l.pid), pg_catalog.quote_literal(l.gid), l.pid FROM l
  WHERE l.key {=} {key} AND l.objsubid {=} {space} AND l.granted
    AND (pg_catalog.cardinality($2::{int8}[]) {=} 0 OR l.pid::{int8} {=} ANY ($2::{int8}[]))
)sql";

// The holder is alone with the row, here to the end of the transaction. CASE sees to it that only locks of
// rows in question are tried, before the row is looked at for good.
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

// The key as one number, and as the lock functions take it, from where the parameter is.
Fillings key_fillings(KeySpace space, const std::string& parameter) {
  const Fillings where = {{"p", parameter}};
  const auto expression = [&](std::string_view text) { return fill(text, where); };
  switch (space) {
    case KeySpace::bigint:
      return {{"key", expression("{p}::{int8}")}, {"arguments", expression("{p}::{int8}")}, {"space", "1"}};
    case KeySpace::pair:
      return {{"key", expression("{p}::{int8}")},
              {"arguments", expression("({p}::{int8} {>>} 32)::{int4}, (({p}::{int8} {<<} 32) {>>} 32)::{int4}")},
              {"space", "2"}};
    case KeySpace::server: {
      const std::string hash = expression("pg_catalog.hashtextextended({p}::{text}, 0)");
      return {{"key", hash}, {"arguments", hash}, {"space", "1"}};
    }
  }
  throw std::logic_error("no such space of keys");
}

class Builder {
 public:
  Builder(std::string_view schema, Durability durability, KeySpace space, LockKind kind, Mode mode)
      : fillings_{{"fence", qualified(schema, table_of("fence", kind))}},
        space_(space),
        table_(table_of("fence", kind) + "."),
        ending_(mode == Mode::shared ? "_shared" : "") {
    const Fillings common = common_fillings(schema, durability);
    fillings_.insert(fillings_.end(), common.begin(), common.end());
    const bool may_be_shared = kind == LockKind::read_write;
    fillings_.emplace_back("shared", ending_);
    fillings_.emplace_back("mode", may_be_shared ? fill(", p.mode {=} 'ShareLock' AS shared", {}) : "");
    fillings_.emplace_back("is_shared", may_be_shared ? ", shared" : "");
    fillings_.emplace_back("one", may_be_shared ? "" : " LIMIT 1");
    fillings_.emplace_back("one_each", may_be_shared ? "" : " DISTINCT ON (l.key, l.objsubid)");
    fillings_.emplace_back("how", may_be_shared ? fill(how_held, {}) : "");
    fillings_.emplace_back("many", mode == Mode::shared ? " " + fill("{+} ($4::{int8} {-} 1)", {}) : "");
    fillings_.emplace_back("locks", fill(locks, fillings_));
    fillings_.emplace_back("purpose", may_be_shared ? "| (locks|waiting)$', '', 'g'" : "', ''");
    fillings_.emplace_back("whose", fill(whose, fillings_));
    fillings_.emplace_back("who", fill(who, fillings_));
  }

  // With the key where `key` says.
  [[nodiscard]] Statement statement(std::string_view text, const std::string& word, const std::string& key = "$1",
                                    const Fillings& more = {}) const {
    return {fill(text, with(key, more)), table_ + word + ending_};
  }
  [[nodiscard]] Statement inspected(std::string_view tokens, const std::string& word) const {
    return statement(inspect, word, "$1", {{"tokens", fill(tokens, fillings_)}});
  }
  // many: how many tokens more than one.
  [[nodiscard]] Statement lock(std::string_view how, std::string_view granted, std::string_view end,
                               const std::string& word, std::string_view many = {}) const {
    const Fillings all = with("$1");
    return statement(
        fenced, word, "$1",
        {{"a", fill(how, all)}, {"granted", fill(granted, all)}, {"end", fill(end, all)}, {"more", fill(many, all)}});
  }

 private:
  [[nodiscard]] Fillings with(const std::string& key, const Fillings& more = {}) const {
    Fillings all = fillings_;
    const Fillings of_key = key_fillings(space_, key);
    all.insert(all.end(), of_key.begin(), of_key.end());
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  Fillings fillings_;
  KeySpace space_;
  std::string table_;   // of the words
  std::string ending_;  // of the words for a mode
};

}  // namespace

AdvisoryStatements advisory_statements(std::string_view schema, Durability durability, KeySpace space, LockKind kind,
                                       Mode mode) {
  const Builder build(schema, durability, space, kind, mode);
  return {
      .try_lock = build.lock(trying, "a.ok", "{commit}", "try_lock", "{many}"),
      .join = build.lock(joining, "a.ok", "{commit}", "join", "{many}"),
      .lock_slice = build.lock(waiting, "a.ok {=} '' AND {brief}", "{commit}", "lock_slice"),
      .try_many = build.statement(try_many, "try_many", "q.key"),
      .proof = build.statement(proof, "proof"),
      .unlock = build.statement(unlock, "unlock"),
      .unlock_many = build.statement(unlock_many, "unlock_many", "q.key"),
      // Whether a transaction of the caller's waits for the disk is the caller's business.
      .try_in_transaction = build.lock(trying_in_transaction, "a.ok", "", "try_in_transaction"),
      .lock_in_transaction = build.lock(waiting_in_transaction, "a.ok {=} ''", restore, "lock_in_transaction"),
      .inspect = build.inspected("{fence}", "inspect"),
      .inspect_without_tables = build.inspected(no_tokens, "inspect_without_tables"),
      .list = build.statement(list, "list"),
      .break_lock = build.statement(break_lock, "break_lock"),
      .forget = build.statement(forget, "forget"),
  };
}

}  // namespace dlock::postgres
