#include "backends/mysql/sql/questions.hpp"

#include <map>

#include "backends/mysql/sql/text.hpp"

namespace dlock::mysql {

using sql::Rows;
using sql::Statement;

namespace {

constexpr std::string_view look = "SELECT {table}.name, {held}, {holder}, {token}, {remaining}, {waiters}{more} FROM ";

constexpr std::string_view forgettable = R"sql(
  SELECT name FROM {table} WHERE (? = '' OR name = ?) AND {old} AND {unused} LIMIT # FOR UPDATE SKIP LOCKED
)sql";
constexpr std::string_view forget = "DELETE FROM {table} WHERE name = ? AND {old} AND {unused}";

// The server shows the text of a waiter's GET_LOCK(), as the connection has written it. {call}: its beginning.
constexpr std::string_view waiting = R"sql(
  (SELECT COUNT(*) FROM information_schema.processlist
    WHERE state = 'User lock' AND info LIKE CONCAT('%GET_LOCK({call}X''', HEX({of}.name), '''%'))
)sql";

// Between quotes: the text of an expression up to its parameter.
std::string call_of(const std::string& expression) {
  std::string out;
  for (const char c : expression.substr(0, expression.find('?'))) out.append(c == '\'' ? 2 : 1, c);
  return out;
}

struct Fragments {
  std::string table;
  std::string_view held;
  std::string_view holder = "IF({held}, holder, '')";
  std::string_view token = "token";
  std::string_view remaining = "NULL";
  std::string_view more = {};  // columns
  std::string_view from = "{table}";
  std::string_view unused;  // condition
  std::string_view break_lock = "KILL CONNECTION #";
};

// In the fillings: {waiters} of inspect.
Questions questions_of(const Fragments& fragments, std::string_view schema, Fillings common) {
  common.emplace_back("table", qualified(schema, fragments.table));
  for (const auto& [word, text] :
       {std::pair{"held", fragments.held}, std::pair{"holder", fragments.holder}, std::pair{"token", fragments.token},
        std::pair{"remaining", fragments.remaining}, std::pair{"more", fragments.more},
        std::pair{"from", fragments.from}, std::pair{"unused", fragments.unused}}) {
    common.emplace_back(word, fill(text, common));
  }
  const auto statement = [&](std::string_view text, const char* of, const Fillings& fillings) {
    return Statement{fill(text, fillings), fragments.table + "." + of};
  };
  Fillings of_many = common;
  of_many.emplace(of_many.begin(), "waiters", "NULL");
  common.emplace_back("waiters", "NULL");  // unless there are some
  std::string looking(look);
  looking += "{from} ";
  return {.inspect = statement(looking + "WHERE {table}.name = ?", "inspect", common),
          .list = statement(looking + "ORDER BY 1 LIMIT #", "list", of_many),
          .break_lock = statement(fragments.break_lock, "break_lock", common),
          .forgettable = statement(forgettable, "forgettable", common),
          .forget = statement(forget, "forget", common)};
}

Questions sharing_questions(std::string_view schema, LockKind kind) {
  const std::string table = table_of("lease", kind);
  Fillings common = {{"slots", qualified(schema, table + "_slot")}};
  Questions questions = questions_of(
      {.table = table,
       .held = "h.owner IS NOT NULL",
       .holder = "COALESCE(h.holder, '')",
       .token = "{table}.token",
       .remaining = "CEIL(TIMESTAMPDIFF(MICROSECOND, {now}, h.expires_at) / 1000)",
       .more = ", permits, h.weight, h.token",
       .from = "{table} LEFT JOIN {slots} AS h ON h.name = {table}.name AND h.expires_at > {now}",
       .unused = "marked_until <= {now} AND NOT EXISTS (SELECT 1 FROM {slots} AS h WHERE h.name = {table}.name AND "
                 "h.expires_at > {now})",
       .break_lock = "UPDATE {slots} SET owner = NULL, weight = 0, expires_at = '1970-01-01', "
                     "token = LAST_INSERT_ID(token) WHERE name = ? AND expires_at > {now}"},
      schema, common);
  common.emplace_back("table", qualified(schema, table));
  questions.lock_row = Statement{fill("UPDATE {table} SET token = token WHERE name = ?", common), table + ".lock"};
  questions.forget_slots = Statement{
      fill("DELETE FROM {slots} WHERE name = ? AND NOT EXISTS (SELECT 1 FROM {table} WHERE {table}.name = ?)", common),
      table + ".forget_slots"};
  return questions;
}

}  // namespace

Questions row_questions(std::string_view schema, LockKind kind, bool optimistic) {
  if (kind == LockKind::read_write || kind == LockKind::semaphore) return sharing_questions(schema, kind);
  const std::string table = table_of(optimistic ? "optimistic" : "lease", kind);
  const std::string waiters =
      fill(waiting, {{"call", call_of(user_lock("bell", schema, table, "?"))}, {"of", qualified(schema, table)}});
  const Fillings common = {{"bell", user_lock("bell", schema, table, "name")}, {"waiters", waiters}};
  if (optimistic) {
    return questions_of({.table = table,
                         .held = "owner IS NOT NULL",
                         .unused = "owner IS NULL AND IS_FREE_LOCK({bell})",
                         .break_lock = "UPDATE {table} SET owner = NULL, version = version + 1, changed_at = {now}, "
                                       "token = LAST_INSERT_ID(token) WHERE name = ? AND {held}"},
                        schema, common);
  }
  return questions_of({.table = table,
                       .held = "(owner IS NOT NULL AND expires_at > {now})",
                       .remaining = "IF({held}, CEIL(TIMESTAMPDIFF(MICROSECOND, {now}, expires_at) / 1000), NULL)",
                       .unused = "(owner IS NULL OR expires_at <= {now}) AND IS_FREE_LOCK({bell})",
                       .break_lock = "UPDATE {table} SET owner = NULL, expires_at = {now}, "
                                     "token = LAST_INSERT_ID(token) WHERE name = ? AND {held}"},
                      schema, common);
}

// A holder has locked the row, so forget skips it.
Questions for_update_questions(std::string_view schema) {
  Questions questions =
      questions_of({.table = "row_lock", .held = "1", .more = ", session", .unused = "TRUE"}, schema, {});
  const std::string committed = "SELECT name, token FROM " + qualified(schema, "row_lock");
  questions.uncommitted = Statement{"SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED", "uncommitted"};
  questions.inspect_committed = Statement{committed + " WHERE name = ?", "row_lock.inspect_committed"};
  questions.list_committed = Statement{committed + " ORDER BY name LIMIT #", "row_lock.list_committed"};
  return questions;
}

Questions named_questions(std::string_view schema, LockKind kind, KeyNames keys) {
  const std::string table = table_of("fence", kind);
  const Fragments fragments = {.table = table,
                               .held = "IS_USED_LOCK({key}) IS NOT NULL",
                               .holder = "IF(session = IS_USED_LOCK({key}), holder, '')",
                               .token = "IF(session <> IS_USED_LOCK({key}), 0, COALESCE(token, 0))",
                               .more = ", IS_USED_LOCK({key})",
                               .unused = "IS_FREE_LOCK({key})"};
  const std::string fence = qualified(schema, table);
  Questions questions = questions_of(fragments, schema, {{"key", key_of(schema, kind, keys, fence + ".name")}});
  // Perhaps no client of dlock has locked this name yet.
  const std::string waiters = fill(waiting, {{"call", call_of(key_of(schema, kind, keys, "?"))}, {"of", "q"}});
  const Fillings of_one = {{"key", key_of(schema, kind, keys, "q.name")}, {"fence", fence}, {"waiters", waiters}};
  std::string text = "SELECT q.name, ";
  for (const std::string_view column : {fragments.held, fragments.holder, fragments.token}) text.append(column) += ", ";
  text += "NULL, {waiters}" + std::string(fragments.more) +
          " FROM (SELECT ? AS name) AS q LEFT JOIN {fence} ON {fence}.name = q.name";
  questions.inspect.sql = fill(text, of_one);
  return questions;
}

Rows read_uncommitted(const sql::Results& results) {
  const Rows& committed = results.at(2);
  std::map<std::string, std::optional<std::int64_t>> tokens;
  for (std::size_t row = 0; row < committed.size(); ++row) tokens[committed.text(row, 0)] = committed.number(row, 1);
  Rows rows = results.at(1);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const auto found = tokens.find(rows.text(row, 0));
    if (found == tokens.end() || found->second != rows.number(row, 3)) continue;
    rows.rows[row].resize(7);  // a proxy may have answered
    rows.rows[row][1] = "0";
    rows.rows[row][2] = "";
    rows.rows[row][6] = std::nullopt;
  }
  return rows;
}

}  // namespace dlock::mysql
