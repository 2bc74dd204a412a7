#include "backends/postgres/sql/statements.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <dlock/error.hpp>

#include "all_statements.hpp"
#include "hostile_names.hpp"
#include "sql_words.hpp"
#include "torture/rig/sanitizers.hpp"

namespace dlock::postgres {

namespace {

using Kind = SqlWord::Kind;

constexpr std::array durabilities = {Durability::sync, Durability::async, Durability::unlogged};

bool is_sign(const SqlWord& word, std::string_view sign) {
  return word.kind == Kind::sign && word.text == sign;
}

// How many parameters each takes, so that the header, the code and the SQL agree.
const std::map<std::string, std::size_t> parameters = {
    {"table.acquire", 4},
    {"table.acquire_many", 4},
    {"table.renew_many", 3},
    {"table.release", 4},
    {"table.release_many", 4},
    {"table.mark_many", 4},
    {"table.leave_many", 2},
    {"table.inspect", 1},
    {"table.list", 1},
    {"table.break_lock", 2},
    {"table.forget", 3},
    {"optimistic.acquire", 6},
    {"optimistic.acquire_many", 6},
    {"optimistic.renew_many", 3},
    {"optimistic.release", 4},
    {"optimistic.release_many", 4},
    {"optimistic.mark_many", 4},
    {"optimistic.leave_many", 2},
    {"older.release", 4},
    {"older.release_many", 4},
    {"older.mark_many", 4},
    {"optimistic.inspect", 1},
    {"optimistic.list", 1},
    {"optimistic.break_lock", 2},
    {"optimistic.forget", 3},
    {"election.table.acquire", 5},
    {"election.table.acquire_many", 5},
    {"election.table.mark_many", 4},
    {"election.table.release", 4},
    {"election.optimistic.acquire", 7},
    {"election.optimistic.acquire_many", 7},
    {"election.optimistic.mark_many", 4},
    {"election.optimistic.release", 4},
    {"advisory.shared.try_lock", 4},
    {"advisory.shared.join", 4},
    {"sharing.change", 9},
    {"sharing.mark_many", 4},
    {"sharing.inspect", 1},
    {"sharing.list", 1},
    {"sharing.break_lock", 2},
    {"sharing.forget", 3},
    {"limit_of_wait", 1},
    {"waits_for_snapshots", 0},
    {"for_update.ensure", 1},
    {"for_update.begin", 0},
    {"for_update.set_patience", 1},
    {"for_update.try_lock", 2},
    {"for_update.lock", 2},
    {"for_update.heartbeat", 0},
    {"for_update.commit", 0},
    {"for_update.rollback", 0},
    {"for_update.try_in_transaction", 2},
    {"for_update.inspect", 1},
    {"for_update.list", 1},
    {"for_update.lock_in_transaction", 4},
    {"for_update.ensure_in_transaction", 2},
    {"for_update.break_lock", 2},
    {"for_update.forget", 3},
    {"schema.version", 0},
    {"schema.rights", 1},
    {"schema.tables", 1},
    {"schema.health", 1},
    {"server.server", 0},
    {"server.settings", 1},
    {"server.standbys", 0},
    {"server.connections", 0},
    {"server.indexes", 1},
    {"preamble.question", 0},
    {"preamble.setting", 3},
    {"creation", 0},
    {"end_of_creation", 0},
    {"extension", 0},
    {"plain", 0},
};
const std::map<std::string, std::size_t> advisory_parameters = {
    {"try_lock", 3},
    {"lock_slice", 4},
    {"try_many", 3},
    {"proof", 1},
    {"unlock", 1},
    {"try_in_transaction", 3},
    {"lock_in_transaction", 5},
    {"inspect", 2},
    {"list", 1},
    {"break_lock", 2},
    {"forget", 3},
    {"inspect_without_tables", 2},
};

TEST(PostgresStatements, TakeAsManyParametersAsTheySay) {
  for (const auto& [name, sql] : all_statements("dlock", Durability::async)) {
    std::set<std::string> seen;
    for (const SqlWord& word : words_of(sql)) {
      if (word.kind == Kind::parameter) seen.insert(word.text);
    }
    const bool advisory = name.starts_with("advisory.") && !name.starts_with("advisory.shared.");
    const std::size_t expected =
        advisory ? advisory_parameters.at(name.substr(name.rfind('.') + 1)) : parameters.at(name);
    EXPECT_EQ(seen.size(), expected) << name;
    for (std::size_t i = 1; i <= expected; ++i) EXPECT_TRUE(seen.contains(std::to_string(i))) << name << " $" << i;
  }
}

TEST(PostgresStatements, GiveEachParameterATypeEverywhere) {
  for (const auto& [name, sql] : all_statements("dlock", Durability::async)) {
    const auto words = words_of(sql);
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words[i].kind != Kind::parameter) continue;
      ASSERT_LT(i + 2, words.size()) << name;
      EXPECT_TRUE(is_sign(words[i + 1], ":") && is_sign(words[i + 2], ":")) << name << " $" << words[i].text;
    }
  }
}

TEST(PostgresStatements, AreOneEach) {
  for (const auto& [name, sql] : all_statements("dlock", Durability::sync)) {
    for (const SqlWord& word : words_of(sql)) EXPECT_FALSE(is_sign(word, ";")) << name << ": " << sql;
    EXPECT_EQ(sql.find_first_of("{}\n"), std::string::npos) << name << ": " << sql;
    EXPECT_EQ(sql, sql.substr(sql.find_first_not_of(' '))) << name;
    EXPECT_FALSE(sql.ends_with(' ')) << name;
  }
}

// Both are older than the wait for a row.
TEST(PostgresStatements, NeverTakeTheTimeOrATokenFromBeforeTheWait) {
  for (const auto& [name, sql] : all_statements("dlock", Durability::async)) {
    std::string lower = sql;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    for (const char* banned : {"now()", "current_timestamp", "statement_timestamp", "transaction_timestamp",
                               "excluded.token", "excluded.expires", "nextval", "localtimestamp"}) {
      EXPECT_EQ(lower.find(banned), std::string::npos) << name << ": " << banned;
    }
  }
}

TEST(PostgresStatements, WaitForTheDiskUnlessToldNotTo) {
  const auto without_waiting = [](const std::string& sql) {
    return sql.find("set_config('synchronous_commit', 'off'") != std::string::npos;
  };
  const auto sync = table_statements("dlock", Durability::sync);
  EXPECT_FALSE(without_waiting(sync.acquire.sql));
  EXPECT_FALSE(without_waiting(sync.acquire_many.sql));
  EXPECT_FALSE(without_waiting(sync.renew_many.sql));
  EXPECT_FALSE(without_waiting(sync.release.sql));
  EXPECT_TRUE(without_waiting(sync.mark_many.sql)) << "a mark that is forgotten costs one look more";
  const auto async = table_statements("dlock", Durability::async);
  for (const Statement* s : {&async.acquire, &async.acquire_many, &async.renew_many, &async.release,
                             &async.release_many, &async.break_lock}) {
    EXPECT_TRUE(without_waiting(s->sql)) << s->sql;
  }
  const auto optimistic = optimistic_statements("dlock", Durability::async);
  for (const Statement* s : {&optimistic.acquire, &optimistic.acquire_many, &optimistic.renew_many, &optimistic.release,
                             &optimistic.release_many, &optimistic.break_lock}) {
    EXPECT_TRUE(without_waiting(s->sql)) << s->sql;
  }
  const auto for_update = for_update_statements("dlock", Durability::async);
  EXPECT_TRUE(without_waiting(for_update.lock.sql));
  EXPECT_TRUE(without_waiting(for_update.try_lock.sql));
  const auto advisory = advisory_statements("dlock", Durability::async, AdvisoryKey::KeySpace::bigint);
  for (const Statement* s : {&advisory.try_lock, &advisory.lock_slice, &advisory.try_many}) {
    EXPECT_TRUE(without_waiting(s->sql)) << s->sql;
  }
}

// A lock_timeout counts for each of two waits, and its session is given up when the second one takes too long.
TEST(PostgresStatements, ThoseThatWaitForARowCountAllWaitsTogether) {
  const auto use = for_update_statements("dlock", Durability::sync);
  EXPECT_NE(use.set_patience.sql.find("'statement_timeout', $1"), std::string::npos);
  EXPECT_NE(use.lock.sql.find("set_config('statement_timeout', '0', true)"), std::string::npos)
      << "what follows in the holder's transaction has all the time it needs";
  const auto advisory = advisory_statements("dlock", Durability::sync, AdvisoryKey::KeySpace::bigint);
  EXPECT_NE(advisory.lock_slice.sql.find("set_config('lock_timeout', '250', true)"), std::string::npos)
      << "whoever has the lock does not wait for the row as long as for the lock";
}

// Behind it are renewals of other locks.
TEST(PostgresStatements, WaitOnlyForAMomentForSomebodyWhoInsertsTheSameRow) {
  for (const auto& statements :
       {table_statements("dlock", Durability::sync), optimistic_statements("dlock", Durability::sync)}) {
    for (const Statement* s : {&statements.acquire, &statements.acquire_many}) {
      const std::size_t insertion = s->sql.find("INSERT INTO");
      ASSERT_NE(insertion, std::string::npos);
      EXPECT_NE(s->sql.find("set_config('lock_timeout', '250', true)", insertion), std::string::npos) << s->sql;
      EXPECT_EQ(s->sql.find("lock_timeout"), s->sql.find("lock_timeout", insertion))
          << "nothing else waits: " << s->sql;
    }
  }
}

TEST(PostgresStatements, LeaveATransactionOfTheCallersAsItWas) {
  const auto for_update = for_update_statements("dlock", Durability::async);
  const auto advisory = advisory_statements("dlock", Durability::async, AdvisoryKey::KeySpace::pair);
  for (const Statement* s :
       {&for_update.try_in_transaction, &for_update.lock_in_transaction, &for_update.ensure_in_transaction,
        &advisory.try_in_transaction, &advisory.lock_in_transaction}) {
    EXPECT_EQ(s->sql.find("synchronous_commit"), std::string::npos) << s->sql;
    EXPECT_EQ(s->sql.find("application_name"), std::string::npos) << s->sql;
  }
  for (const Statement* s :
       {&for_update.lock_in_transaction, &for_update.ensure_in_transaction, &advisory.lock_in_transaction}) {
    EXPECT_NE(s->sql.find("current_setting('lock_timeout') AS before"), std::string::npos) << s->sql;
    const bool put_back = s->sql.find("set_config('lock_timeout', b.before, true)") != std::string::npos ||
                          s->sql.find("set_config('lock_timeout', (SELECT before FROM") != std::string::npos;
    EXPECT_TRUE(put_back) << s->sql;
  }
}

TEST(PostgresStatements, TakeTheLockInTheSpaceOfItsKeys) {
  using KeySpace = AdvisoryKey::KeySpace;
  const auto unlock = [](KeySpace space) { return advisory_statements("dlock", Durability::sync, space).unlock.sql; };
  const std::string of_many = ", q.key FROM pg_catalog.unnest($1::pg_catalog.text[]) AS q (key)";
  EXPECT_EQ(unlock(KeySpace::bigint), "SELECT pg_catalog.pg_advisory_unlock(q.key::pg_catalog.int8)" + of_many);
  EXPECT_EQ(unlock(KeySpace::pair),
            "SELECT pg_catalog.pg_advisory_unlock((q.key::pg_catalog.int8 OPERATOR(pg_catalog.>>) "
            "32)::pg_catalog.int4, ((q.key::pg_catalog.int8 OPERATOR(pg_catalog.<<) 32) OPERATOR(pg_catalog.>>) "
            "32)::pg_catalog.int4)" +
                of_many);
  EXPECT_EQ(unlock(KeySpace::server),
            "SELECT pg_catalog.pg_advisory_unlock(pg_catalog.hashtextextended(q.key::pg_catalog.text, 0))" + of_many);
}

// Kinds of locks are told apart by their tables, and by nothing else that their statements say.
TEST(PostgresStatements, OfOtherKindsAreAboutOtherTables) {
  const auto tables_in = [](const std::string& sql) {
    std::set<std::string> tables;
    const auto words = words_of(sql);
    for (std::size_t i = 2; i < words.size(); ++i) {
      if (is_sign(words[i - 1], ".") && words[i - 2].text == "the schema") tables.insert(words[i].text);
    }
    return tables;
  };
  const auto expect_only = [&](const auto& statements, const std::string& table) {
    for (const Statement* s : statements) EXPECT_EQ(tables_in(s->sql), std::set<std::string>{table}) << s->sql;
  };
  const auto t = table_statements("the schema", Durability::sync, Queue::none, LockKind::election);
  const auto o = optimistic_statements("the schema", Durability::sync, Queue::none, LockKind::election);
  for (const auto& [s, table] : {std::pair{&t, "lease_elect"}, std::pair{&o, "optimistic_elect"}}) {
    expect_only(std::array{&s->acquire, &s->acquire_many, &s->renew_many, &s->release, &s->release_many, &s->mark_many,
                           &s->inspect, &s->list, &s->break_lock, &s->forget},
                table);
  }
  for (const auto& [space, table] :
       {std::pair{LockKind::read_write, "lease_rw"}, std::pair{LockKind::semaphore, "lease_sem"}}) {
    const auto s = sharing_statements("the schema", Durability::sync, space);
    expect_only(std::array{&s.change, &s.mark_many, &s.inspect, &s.list, &s.break_lock, &s.forget}, table);
  }
  const auto a = advisory_statements("the schema", Durability::sync, AdvisoryKey::KeySpace::bigint, LockKind::election);
  for (const Mode mode : {Mode::shared, Mode::exclusive}) {
    const auto rw =
        advisory_statements("the schema", Durability::sync, AdvisoryKey::KeySpace::bigint, LockKind::read_write, mode);
    expect_only(std::array{&rw.try_lock, &rw.join, &rw.lock_slice, &rw.inspect, &rw.list, &rw.forget}, "fence_rw");
  }
  expect_only(std::array{&a.try_lock, &a.lock_slice, &a.try_many, &a.inspect, &a.list, &a.forget}, "fence_elect");
}

// The structure of every statement is that of the same statement with a harmless schema: nothing gets out of its
// quotes.
TEST(PostgresStatements, AreTheSameWhateverTheSchemaIsCalled) {
  const auto plain = all_statements("dlock", Durability::async);
  std::vector<std::vector<SqlWord>> structures;
  for (const auto& [name, sql] : plain) structures.push_back(words_of(sql));
  const SqlWord plain_schema{Kind::identifier, "dlock"};
  for (const std::string& schema : hostile_names(rig::sanitized ? 30 : 100)) {
    const auto hostile = all_statements(schema, Durability::async);
    ASSERT_EQ(hostile.size(), plain.size());
    for (std::size_t i = 0; i < hostile.size(); ++i) {
      auto expected = structures[i];
      std::replace(expected.begin(), expected.end(), plain_schema, SqlWord{Kind::identifier, schema});
      ASSERT_EQ(words_of(hostile[i].second), expected) << hostile[i].first << ": " << hostile[i].second;
    }
  }
}

TEST(PostgresStatements, TouchNothingOutsideTheirSchema) {
  for (const auto& [name, sql] : all_statements("the schema", Durability::sync)) {
    const auto words = words_of(sql);
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words[i].kind != Kind::identifier || words[i].text == "C") continue;
      const bool schema = words[i].text == "the schema";
      const bool in_schema = i >= 2 && is_sign(words[i - 1], ".") && words[i - 2].text == "the schema";
      EXPECT_TRUE(schema || in_schema) << name << ": " << words[i].text;
    }
  }
}

TEST(PostgresStatements, AreNotMadeForASchemaThatTheServerWouldCallOtherwise) {
  for (const Durability durability : durabilities) {
    EXPECT_THROW((void)all_statements("", durability), Error);
    EXPECT_THROW((void)all_statements(std::string(64, 'x'), durability), Error);
  }
}

// The server's way of reading an array.
std::vector<std::string> read_back(const std::string& literal) {
  std::vector<std::string> elements;
  EXPECT_TRUE(literal.starts_with('{') && literal.ends_with('}'));
  for (std::size_t at = 1; at + 1 < literal.size();) {
    EXPECT_EQ(literal[at], '"') << literal;
    std::string element;
    for (++at; at < literal.size() && literal[at] != '"'; ++at) {
      if (literal[at] == '\\') ++at;
      element += literal[at];
    }
    elements.push_back(element);
    ++at;
    if (literal[at] == ',') ++at;
  }
  return elements;
}

TEST(PostgresArrays, OfTextsAreReadBackAsTheyWere) {
  EXPECT_EQ(text_array({}), "{}");
  EXPECT_EQ(text_array({""}), "{\"\"}");
  EXPECT_EQ(text_array({"NULL", "a,b"}), "{\"NULL\",\"a,b\"}");
  EXPECT_EQ(text_array({"a\"b\\c"}), "{\"a\\\"b\\\\c\"}");
  const auto names = hostile_names(1000, 512);
  const std::vector<std::string_view> views(names.begin(), names.end());
  EXPECT_EQ(read_back(text_array(views)), names);
}

TEST(PostgresArrays, OfNumbers) {
  EXPECT_EQ(bigint_array({}), "{}");
  EXPECT_EQ(bigint_array({1, -2, 30000}), "{1,-2,30000}");
}

}  // namespace

}  // namespace dlock::postgres
