#include "backends/postgres/schema/layout.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sql_words.hpp"

namespace dlock::postgres {

namespace {

TEST(PostgresSchema, IsChangedInOneTransactionUnderALock) {
  for (const auto& statements :
       {creation("dlock", Durability::sync, true), recording("dlock"), extension("dlock", layout()[1])}) {
    EXPECT_TRUE(statements.front().starts_with("BEGIN ISOLATION LEVEL READ COMMITTED"));
    EXPECT_NE(statements.at(1).find("lock_timeout"), std::string::npos);
    EXPECT_NE(statements.at(first_change - 1).find("pg_advisory_xact_lock("), std::string::npos);
    EXPECT_EQ(statements.back(), "COMMIT");
  }
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
    const std::string added = table.added.empty() ? "" : "," + std::string(table.added);
    EXPECT_EQ(columns, std::string(table.columns) + added) << *found;
  }
}

// Anything else would keep PostgreSQL from updating rows in place.
TEST(PostgresSchema, HasNoIndexButThatOfTheNames) {
  for (const std::string& sql : creation("dlock", Durability::sync, true)) {
    EXPECT_EQ(sql.find("INDEX"), std::string::npos) << sql;
    EXPECT_EQ(sql.find("UNIQUE"), std::string::npos) << sql;
  }
}

}  // namespace

}  // namespace dlock::postgres
