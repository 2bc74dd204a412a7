#include "backends/mysql/sql/row_statements.hpp"

#include <string>

#include "backends/mysql/sql/text.hpp"

namespace dlock::mysql {

using sql::Statement;

namespace {

// --- Plain locks and elections ---------------------------------------------------------------------------------------

// In which the two strategies differ. {when}: the column with the time of the last release. {granted}: behind the first
// assignment.
struct Fragments {
  std::string_view table;
  std::string_view when;
  std::string_view columns;   // of a new row, behind its name
  std::string_view values;    // of these columns
  std::string_view held;      // condition
  std::string_view free;      // condition: another owner may take the lock
  std::string_view granting;  // assignments, for a grant
  std::string_view renewal;   // assignments
  std::string_view freeing;   // assignments
  std::string_view busy;      // us: the answer of an acquire that finds the lock busy
};

constexpr std::string_view make_row =
    "INSERT INTO {table} (name, {columns}) VALUES (?, {values}) ON DUPLICATE KEY UPDATE name = VALUES(name)";

// The column owner is '' once the lock is granted, or '+' if the owner has it already, until the last assignment.
constexpr std::string_view acquire = R"sql(
  UPDATE {table} SET
    owner = IF(owner = ?, '+', IF({free}, '', owner)),
    session = IF({granted}, {session}, session),
    token = CASE owner WHEN '' THEN LAST_INSERT_ID(GREATEST(token + 1, {us}))
      WHEN '+' THEN LAST_INSERT_ID(token) ELSE token + 0 * LAST_INSERT_ID({busy}) END,
    {granting},
    holder = IF(owner = '', ?, holder),
    owner = IF({granted}, ?, owner)
  WHERE name = ?
)sql";
constexpr std::string_view is_granted = "owner IN ('', '+')";

constexpr std::string_view renew = R"sql(
  UPDATE {table} SET {renewal}{adopt}, token = LAST_INSERT_ID(token) WHERE name = ? AND owner = ? AND {held}
)sql";

// The bell goes to the first waiter before another acquire of the same query can take the row. That waiter waits for
// the end of this transaction.
constexpr std::string_view release = R"sql(
  UPDATE {table} SET owner = NULL, {freeing}{give_back}, token = LAST_INSERT_ID(token) WHERE name = ? AND owner = ?
)sql";

constexpr std::string_view respects_bell = R"sql(
  AND (ABS(TIMESTAMPDIFF(MICROSECOND, {when}, {now})) >= 500000
    OR COALESCE(IS_USED_LOCK({bell}) IN ({me}, #, session), TRUE))
)sql";

// GET_LOCK() would count a bell that the session has already a second time.
constexpr std::string_view session_with_bell = R"sql(
  CASE IS_USED_LOCK({bell}) WHEN {me} THEN {me} WHEN # THEN #
    ELSE IF(GET_LOCK({bell}, 0), {me}, IF(owner = '', 0, session)) END
)sql";

// This session takes the bell or gives it back.
constexpr std::string_view ring = R"sql(
  IF({held} AND session = {me}, IF(IS_FREE_LOCK({bell}), GET_LOCK({bell}, 0), 0),
    IF(IS_USED_LOCK({bell}) = {me}, RELEASE_LOCK({bell}), 0))
)sql";

// The row may be missing: inserted by a query that was rolled back.
constexpr std::string_view tidy =
    "SELECT {rings} FROM (SELECT ? AS name) AS q LEFT JOIN {table} ON {table}.name = q.name";

// After a reconnect, or if the waiter's session that had the bell is gone.
constexpr std::string_view adopt = ", session = IF(IS_FREE_LOCK({bell}), {me}, session)";

// A waiter's session that has the bell gives it back in a moment, and no other session takes the lock before that.
constexpr std::string_view give_back = ", session = COALESCE(0 * RELEASE_LOCK({bell}), 0)";

LeaseStatements statements_of(const Fragments& fragments, std::string_view schema, LockKind kind) {
  const std::string table = table_of(fragments.table, kind);
  const bool optimistic = fragments.table == "optimistic";
  Fillings common = {{"table", qualified(schema, table)},       {"bell", user_lock("bell", schema, table, "name")},
                     {"when", std::string(fragments.when)},     {"columns", std::string(fragments.columns)},
                     {"values", std::string(fragments.values)}, {"granted", std::string(is_granted)}};
  for (const auto& [word, text] : {std::pair{"held", fragments.held}, std::pair{"granting", fragments.granting},
                                   std::pair{"renewal", fragments.renewal}, std::pair{"freeing", fragments.freeing},
                                   std::pair{"busy", fragments.busy}}) {
    common.emplace_back(word, fill(text, common));
  }
  common.emplace_back("ring", fill(ring, common));
  const auto variant = [&](bool bell) {
    Fillings all = common;
    const auto add = [&](std::string_view word, std::string_view with_bell, std::string_view without) {
      all.emplace_back(word, fill(bell ? with_bell : without, all));
    };
    add("respects_bell", respects_bell, "");
    add("free", fragments.free, fragments.free);
    add("session", session_with_bell, "IF(owner = '', 0, session)");
    add("adopt", adopt, "");
    add("give_back", give_back, "");
    const auto statement = [&](std::string_view text, const char* of) {
      return Statement{fill(text, all), table + "." + of + (bell ? "_with_bell" : "")};
    };
    return LeaseStatements::Variant{.acquire = statement(acquire, "acquire"),
                                    .renew = statement(renew, "renew"),
                                    .release = statement(release, "release")};
  };
  Fillings of_one = common;
  of_one.erase(of_one.begin() + 1, of_one.end());
  of_one.emplace_back("bell", user_lock("bell", schema, table, "q.name"));
  of_one.emplace_back("held", fill(fragments.held));
  common.emplace_back("rings", fill(ring, of_one));
  common.emplace_back("bell_of", user_lock("bell", schema, table, "?"));
  const auto statement = [&](std::string_view text, const char* of) {
    return Statement{fill(text, common), table + "." + of};
  };
  return {.plain = variant(false),
          .with_bell = variant(true),
          .make_row = statement(make_row, "make_row"),
          .look = optimistic ? statement("SELECT owner, version FROM {table} WHERE name = ?", "look") : Statement{},
          .tidy = statement(tidy, "tidy"),
          .wait = statement("SELECT GET_LOCK({bell_of}, # / 1000000)", "wait"),
          .leave = statement("SELECT RELEASE_LOCK({bell_of})", "leave")};
}

}  // namespace

LeaseStatements lease_statements(std::string_view schema, LockKind kind) {
  return statements_of({.table = "lease",
                        .when = "expires_at",
                        .columns = "expires_at",
                        .values = "'1970-01-01'",
                        .held = "owner IS NOT NULL AND expires_at > {now}",
                        .free = "(owner IS NULL OR expires_at <= {now}) {respects_bell}",
                        .granting = "expires_at = IF({granted}, {now} + INTERVAL # MICROSECOND, expires_at)",
                        .renewal = "expires_at = {now} + INTERVAL # MICROSECOND",
                        .freeing = "expires_at = {now}",
                        .busy = "GREATEST(1, TIMESTAMPDIFF(MICROSECOND, {now}, expires_at))"},
                       schema, kind);
}

LeaseStatements optimistic_statements(std::string_view schema, LockKind kind) {
  return statements_of({.table = "optimistic",
                        .when = "changed_at",
                        .columns = "version, changed_at, lease_ms",
                        .values = "0, '1970-01-01', 0",
                        .held = "owner IS NOT NULL",
                        .free = "owner IS NULL {respects_bell} OR owner = ? AND version = #",
                        .granting = "version = IF({granted}, version + 1, version), "
                                    "changed_at = IF({granted}, {now}, changed_at), "
                                    "lease_ms = IF({granted}, #, lease_ms)",
                        .renewal = "lease_ms = #, version = version + 1, changed_at = {now}",
                        .freeing = "version = version + 1, changed_at = {now}",
                        .busy = "IF(owner IS NULL, 1, lease_ms * 1000)"},
                       schema, kind);
}

// --- Read-write locks and semaphores ---------------------------------------------------------------------------------

namespace {

// A read-write lock is a semaphore with more permits than there can be readers: a reader takes one permit, a writer
// all. Each statement reads what was committed when it began, so the first one of a transaction locks the row of the
// name, and the others see all that was done under earlier locks. A count in the statement that waits for the row can
// be older than the wait.
constexpr std::string_view open = "INSERT INTO {table} (name) VALUES (?) ON DUPLICATE KEY UPDATE name = VALUES(name)";
constexpr std::string_view lock = "UPDATE {table} SET token = token WHERE name = ?";

constexpr std::string_view renew_slot = R"sql(
  UPDATE {slots} SET expires_at = {now} + INTERVAL # MICROSECOND, token = LAST_INSERT_ID(token)
  WHERE name = ? AND owner = ? AND expires_at > {now}
)sql";

constexpr std::string_view free_slot = R"sql(
  UPDATE {slots} SET owner = NULL, weight = 0, expires_at = '1970-01-01', token = LAST_INSERT_ID(token)
  WHERE name = ? AND owner = ?
)sql";

// Others with another number of permits: nothing may be taken.
constexpr std::string_view grant = R"sql(
  UPDATE {table} AS l SET permits = #, marked_until = IF(writer = ?, '1970-01-01', marked_until),
    writer = NULLIF(writer, ?), token = LAST_INSERT_ID(GREATEST(token + 1, {us}))
  WHERE (# = # OR l.marked_until <= {now}) AND {taken} <= IF(l.permits = #, # - #, 0) AND l.name = ?
    AND NOT EXISTS (SELECT 1 FROM {slots} AS h WHERE h.name = l.name AND h.owner = ? AND h.expires_at > {now})
)sql";

// Behind grant: if that has granted. In the first slot whose holder is gone, or in a new one.
constexpr std::string_view enter = R"sql(
  INSERT INTO {slots} (name, slot, owner, holder, weight, token, expires_at)
  SELECT l.name, COALESCE(
      (SELECT MIN(h.slot) FROM {slots} AS h WHERE h.name = l.name AND h.expires_at <= {now}),
      (SELECT MAX(h.slot) + 1 FROM {slots} AS h WHERE h.name = l.name), 1),
    ?, ?, #, l.token, {now} + INTERVAL # MICROSECOND FROM {table} AS l WHERE ROW_COUNT() > 0 AND l.name = ?
  ON DUPLICATE KEY UPDATE owner = VALUES(owner), holder = VALUES(holder), weight = VALUES(weight),
    token = VALUES(token), expires_at = VALUES(expires_at)
)sql";

// A writer asks again after half of its mark, by its own clock, and renews the mark once a quarter is over.
constexpr std::string_view mark = R"sql(
  UPDATE {table} AS l SET marked_until = {now} + INTERVAL # MICROSECOND, writer = ?
  WHERE l.name = ? AND (l.marked_until <= {now}
      OR (l.writer = ? AND l.marked_until < {now} + INTERVAL (# * 3 DIV 4) MICROSECOND))
    AND NOT EXISTS (SELECT 1 FROM {slots} AS h WHERE h.name = l.name AND h.owner = ? AND h.expires_at > {now})
)sql";

constexpr std::string_view look_at_slots = R"sql(
  SELECT l.permits, {taken}, GREATEST(0, CEIL(TIMESTAMPDIFF(MICROSECOND, {now}, LEAST(
      COALESCE((SELECT MIN(h.expires_at) FROM {slots} AS h WHERE h.name = l.name AND h.expires_at > {now}),
        l.marked_until),
      IF(# <> # AND l.marked_until > {now}, l.marked_until, TIMESTAMP'9999-12-31 00:00:00'))) / 1000))
  FROM {table} AS l WHERE l.name = ?
)sql";

constexpr std::string_view taken =
    "COALESCE((SELECT SUM(h.weight) FROM {slots} AS h WHERE h.name = l.name AND h.expires_at > {now}), 0)";

}  // namespace

SharingStatements sharing_statements(std::string_view schema, LockKind kind) {
  const std::string table = table_of("lease", kind);
  Fillings common = {{"table", qualified(schema, table)}, {"slots", qualified(schema, table + "_slot")}};
  common.emplace_back("taken", fill(taken, common));
  const auto statement = [&](const std::string& text, const char* of) {
    return Statement{fill(text, common), table + "." + of};
  };
  return {.open = statement(std::string(open), "open"),
          .grant = statement(std::string(grant), "grant"),
          .enter = statement(std::string(enter), "enter"),
          .mark = statement(std::string(mark), "mark"),
          .look = statement(std::string(look_at_slots), "look"),
          .lock = statement(std::string(lock), "lock"),
          .renew = statement(std::string(renew_slot), "renew"),
          .release = statement(std::string(free_slot), "release"),
          .unmark = statement("UPDATE {table} SET writer = NULL, marked_until = '1970-01-01' WHERE name = ? AND "
                              "writer = ?",
                              "unmark")};
}

}  // namespace dlock::mysql
