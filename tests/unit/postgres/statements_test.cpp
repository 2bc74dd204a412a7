#include "backends/postgres/sql/statements.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
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

constexpr std::array durabilities = {Durability::sync, Durability::async, Durability::unlogged};

bool is_sign(const SqlWord& word, std::string_view sign) {
  return word.kind == SqlWord::Kind::sign && word.text == sign;
}

TEST(PostgresStatements, GiveEachParameterATypeEverywhere) {
  for (const auto& [name, sql] : all_statements("dlock", Durability::async)) {
    const auto words = words_of(sql);
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words[i].kind != SqlWord::Kind::parameter) continue;
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
  const std::set<std::string> of_rows = {"acquire", "renew", "release", "change", "break_lock"};
  const std::set<std::string> of_sessions = {"try_lock", "join", "lock_slice", "try_many", "lock"};
  for (const Durability durability : durabilities) {
    std::size_t found = 0;
    for (const auto& [name, sql] : all_statements("dlock", durability)) {
      const std::string what = name.substr(name.find('.') + 1);
      const bool marks = what == "mark";  // one that is forgotten costs one look more
      const bool rows = name.starts_with("lease") || name.starts_with("optimistic");
      if (!marks && !(rows ? of_rows : of_sessions).contains(what)) continue;
      ++found;
      EXPECT_EQ(sql.find("set_config('synchronous_commit', 'off'") != std::string::npos,
                marks || durability != Durability::sync)
          << name << ": " << sql;
    }
    EXPECT_GT(found, 30U);
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
    const std::string& sql = statements.acquire.sql;
    const std::size_t insertion = sql.find("INSERT INTO");
    ASSERT_NE(insertion, std::string::npos);
    EXPECT_NE(sql.find("set_config('lock_timeout', '250', true)", insertion), std::string::npos) << sql;
    EXPECT_EQ(sql.find("lock_timeout"), sql.find("lock_timeout", insertion)) << "nothing else waits: " << sql;
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
}

TEST(PostgresStatements, TakeTheLockInTheSpaceOfItsKeys) {
  using KeySpace = AdvisoryKey::KeySpace;
  const auto unlock = [](KeySpace space) {
    return advisory_statements("dlock", Durability::sync, space).unlock_many.sql;
  };
  const std::string of_many = " FROM pg_catalog.unnest($1::pg_catalog.text[]) AS q (key)";
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
TEST(PostgresStatements, AreAboutTheTableOfTheirKindAlone) {
  std::set<std::string> kinds;
  for (const auto& [name, sql] : all_statements("the schema", Durability::sync)) {
    const std::string table = name.substr(0, name.find('.'));
    if (!table.starts_with("lease") && !table.starts_with("optimistic") && !table.starts_with("fence")) continue;
    const auto words = words_of(sql);
    for (std::size_t i = 2; i < words.size(); ++i) {
      if (!is_sign(words[i - 1], ".") || words[i - 2].text != "the schema") continue;
      EXPECT_EQ(words[i].text, table) << name << ": " << sql;
      kinds.insert(table);
    }
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"fence", "fence_elect", "fence_rw", "lease", "lease_elect", "lease_rw",
                                          "lease_sem", "optimistic", "optimistic_elect"}));
}

// The structure of every statement is that of the same statement with a harmless schema: nothing gets out of its
// quotes.
TEST(PostgresStatements, AreTheSameWhateverTheSchemaIsCalled) {
  const auto plain = all_statements("dlock", Durability::async);
  std::vector<std::vector<SqlWord>> structures;
  for (const auto& [name, sql] : plain) structures.push_back(words_of(sql));
  const SqlWord plain_schema{SqlWord::Kind::identifier, "dlock"};
  for (const std::string& schema : hostile_names(rig::sanitized ? 30 : 100)) {
    const auto hostile = all_statements(schema, Durability::async);
    ASSERT_EQ(hostile.size(), plain.size());
    for (std::size_t i = 0; i < hostile.size(); ++i) {
      auto expected = structures[i];
      std::replace(expected.begin(), expected.end(), plain_schema, SqlWord{SqlWord::Kind::identifier, schema});
      ASSERT_EQ(words_of(hostile[i].second), expected) << hostile[i].first << ": " << hostile[i].second;
    }
  }
}

TEST(PostgresStatements, TouchNothingOutsideTheirSchema) {
  for (const auto& [name, sql] : all_statements("the schema", Durability::sync)) {
    const auto words = words_of(sql);
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words[i].kind != SqlWord::Kind::identifier || words[i].text == "C") continue;
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
