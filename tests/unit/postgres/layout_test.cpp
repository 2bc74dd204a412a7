#include "backends/postgres/schema/layout.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "sql_words.hpp"

namespace dlock::postgres {

namespace {

bool any_starts_with(const std::vector<std::string>& statements, std::string_view start) {
  return std::any_of(statements.begin(), statements.end(), [&](const auto& sql) { return sql.starts_with(start); });
}

TEST(PostgresSchema, IsCreatedInOneTransactionUnderALock) {
  const auto statements = creation("dlock", Durability::sync, true);
  ASSERT_GE(statements.size(), 6U);
  EXPECT_TRUE(statements.front().starts_with("BEGIN ISOLATION LEVEL READ COMMITTED"));
  EXPECT_FALSE(any_starts_with(statements, "COMMIT"));
  EXPECT_FALSE(any_starts_with(statements, "INSERT")) << "before it is known whose the tables are";
  EXPECT_EQ(end_of_creation("dlock").back(), "COMMIT");
  EXPECT_NE(statements[1].find("lock_timeout"), std::string::npos);
  EXPECT_NE(statements[2].find("idle_in_transaction_session_timeout"), std::string::npos) << "it ends in another query";
  EXPECT_NE(statements[3].find("pg_advisory_xact_lock("), std::string::npos);
  EXPECT_EQ(statements[4], "CREATE SCHEMA IF NOT EXISTS \"dlock\"");
}

TEST(PostgresSchema, IsLeftAloneBySomebodyWhoMayOnlyCreateTables) {
  EXPECT_FALSE(any_starts_with(creation("dlock", Durability::sync, false), "CREATE SCHEMA"));
  EXPECT_EQ(creation("dlock", Durability::sync, false).size() + 1, creation("dlock", Durability::sync, true).size());
}

TEST(PostgresSchema, ForgetsNothingUnlessToldTo) {
  EXPECT_FALSE(any_starts_with(creation("dlock", Durability::sync, true), "CREATE UNLOGGED"));
  EXPECT_FALSE(any_starts_with(creation("dlock", Durability::async, true), "CREATE UNLOGGED"));
  const auto unlogged = creation("dlock", Durability::unlogged, true);
  EXPECT_TRUE(any_starts_with(unlogged, "CREATE UNLOGGED TABLE IF NOT EXISTS \"dlock\".\"lease\""));
  EXPECT_TRUE(any_starts_with(unlogged, "CREATE TABLE IF NOT EXISTS \"dlock\".\"meta\"")) << "its version must last";
}

// The columns that the check expects are those that are created.
TEST(PostgresSchema, HasTheColumnsThatItSays) {
  const auto statements = creation("dlock", Durability::sync, true);
  for (const TableDefinition& table : layout()) {
    const std::string start = "CREATE TABLE IF NOT EXISTS \"dlock\".\"" + std::string(table.name) + "\" (";
    const auto found = std::find_if(statements.begin(), statements.end(),
                                    [&](const std::string& sql) { return sql.starts_with(start); });
    ASSERT_NE(found, statements.end()) << table.name;
    std::string columns;
    int depth = 0;
    bool first = true;
    for (const SqlWord& word : words_of(found->substr(start.size()))) {
      if (word.text == "(") ++depth;
      if (word.text == ")" && --depth < 0) break;
      if (first) columns += (columns.empty() ? "" : ",") + word.text;
      first = depth == 0 && word.text == ",";
    }
    EXPECT_EQ(columns, table.columns) << *found;
  }
}

// Anything else would keep PostgreSQL from updating rows in place.
TEST(PostgresSchema, HasNoIndexButThatOfTheNames) {
  for (const std::string& sql : creation("dlock", Durability::sync, true)) {
    EXPECT_EQ(sql.find("INDEX"), std::string::npos) << sql;
    EXPECT_EQ(sql.find("UNIQUE"), std::string::npos) << sql;
  }
}

TEST(PostgresSchema, NamesOfItsTablesAreAllDifferent) {
  std::set<std::string_view> names;
  for (const TableDefinition& table : layout()) EXPECT_TRUE(names.insert(table.name).second) << table.name;
}

TEST(PostgresSchema, TellsWhatARoleNeeds) {
  EXPECT_EQ(needed_grants("my \"locks\""),
            "GRANT USAGE ON SCHEMA \"my \"\"locks\"\"\" TO <role>; GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN "
            "SCHEMA \"my \"\"locks\"\"\" TO <role>");
}

}  // namespace

}  // namespace dlock::postgres
