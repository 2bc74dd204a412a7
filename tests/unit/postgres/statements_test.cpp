// All statements of dlock: their form, and when they read the clock. That each names the schemas of what it uses, the
// server's parser shows in tests/integration/postgres/roles_test.cpp.
#include "backends/postgres/sql/statements.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "all_statements.hpp"
#include "backends/postgres/schema/layout.hpp"
#include "backends/postgres/sql/identifier.hpp"
#include "backends/postgres/sql/preamble.hpp"
#include "hostile_names.hpp"
#include "tests/simulation/postgres/fake_connection.hpp"
#include "tests/support/sanitizers.hpp"

namespace dlock::postgres {

namespace {

constexpr std::array durabilities = {Durability::sync, Durability::async, Durability::unlogged};

TEST(PostgresStatements, EachStatement_IsOneLineWithTypedParameters) {
  const std::regex untyped("\\$[0-9]+(?![0-9]|::)");
  for (const auto& [name, sql] : all_statements("dlock", Durability::async)) {
    EXPECT_FALSE(std::regex_search(sql, untyped)) << name << ": " << sql;
    EXPECT_EQ(sql.find_first_of("{}\n;"), std::string::npos) << name << ": " << sql;
    EXPECT_FALSE(sql.starts_with(' ') || sql.ends_with(' ')) << name;
  }
}

// Both are older than the wait for a row.
// Hazard: a lease counts from the start of a transaction
// Hazard: a time or token from before the wait for a row
// Hazard: `nextval()` as token repeats after a crash
TEST(PostgresStatements, TimeAndToken_AreTakenAfterTheWait) {
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

TEST(PostgresStatements, Commit_WaitsForTheDiskUnlessDisabled) {
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
TEST(PostgresStatements, WaitForRow_LimitsTheSumOfWaits) {
  const auto use = for_update_statements("dlock", Durability::sync);
  EXPECT_NE(use.set_patience.sql.find("'statement_timeout', $1"), std::string::npos);
  EXPECT_NE(use.lock.sql.find("set_config('statement_timeout', '0', true)"), std::string::npos)
      << "what follows in the holder's transaction has all the time it needs";
  const auto advisory = advisory_statements("dlock", Durability::sync, AdvisoryKey::KeySpace::bigint);
  EXPECT_NE(advisory.lock_slice.sql.find("set_config('lock_timeout', '250', true)"), std::string::npos)
      << "whoever has the lock does not wait for the row as long as for the lock";
}

// Kinds of locks are told apart by their tables, and by nothing else that their statements say.
TEST(PostgresStatements, EachStatement_UsesItsSchemaAndTableOnly) {
  std::set<std::string> kinds;
  const std::regex quoted(R"re((?:"the schema"\.)?"([^"]*)")re");
  for (const auto& [name, sql] : all_statements("the schema", Durability::sync)) {
    const std::string table = name.substr(0, name.find('.'));
    const bool of_a_kind = table.starts_with("lease") || table.starts_with("optimistic") || table.starts_with("fence");
    for (std::sregex_iterator at(sql.begin(), sql.end(), quoted), end; at != end; ++at) {
      if (at->str(1) == "C" || at->str() == "\"the schema\"") continue;
      EXPECT_TRUE(at->str().starts_with("\"the schema\".")) << name << ": " << sql;
      if (!of_a_kind) continue;
      EXPECT_EQ(at->str(1), table) << name << ": " << sql;
      kinds.insert(table);
    }
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"fence", "fence_elect", "fence_rw", "lease", "lease_elect", "lease_rw",
                                          "lease_sem", "optimistic", "optimistic_elect"}));
}

// Nothing gets out of its quotes.
TEST(PostgresStatements, SchemaName_ChangesNothingElse) {
  const auto plain = all_statements("dlock", Durability::async);
  for (const std::string& schema : hostile_names(dlock::test::sanitized ? 30 : 100)) {
    const std::string quoted = quote_identifier(schema);
    const auto hostile = all_statements(schema, Durability::async);
    ASSERT_EQ(hostile.size(), plain.size());
    for (std::size_t i = 0; i < hostile.size(); ++i) {
      std::string sql = hostile[i].second;
      for (auto at = sql.find(quoted); at != sql.npos; at = sql.find(quoted, at))
        sql.replace(at, quoted.size(), "\"dlock\"");
      ASSERT_EQ(sql, plain[i].second) << hostile[i].first << ": " << hostile[i].second;
    }
  }
}

TEST(PostgresArrays, Arrays_AreReadBack) {
  EXPECT_EQ(text_array({}), "{}");
  EXPECT_EQ(bigint_array({}), "{}");
  EXPECT_EQ(bigint_array({1, -2, 30000}), "{1,-2,30000}");
  EXPECT_EQ(text_array({""}), "{\"\"}");
  EXPECT_EQ(text_array({"NULL", "a,b"}), "{\"NULL\",\"a,b\"}");
  EXPECT_EQ(text_array({"a\"b\\c"}), "{\"a\\\"b\\\\c\"}");
  const auto names = hostile_names(1000, 512);
  const std::vector<std::string_view> views(names.begin(), names.end());
  EXPECT_EQ(elements_of(text_array(views)), names);
}

// Statements that are made somewhere else than in the lists would not be tested: of each literal that begins like one,
// what comes before the first hole is in one of them.
TEST(PostgresStatements, Sources_HaveNoOtherStatement) {
  auto all = all_statements("dlock", Durability::sync);
  const auto unlogged = all_statements("dlock", Durability::unlogged);
  all.insert(all.end(), unlogged.begin(), unlogged.end());
  const std::regex literal(
      "(?:\"|R\"sql\\(\\s*)((?:SELECT|WITH|INSERT|UPDATE|DELETE|MERGE|CREATE|DROP|ALTER|TRUNCATE|LOCK|LISTEN|NOTIFY|"
      "SET|"
      "RESET|SHOW|BEGIN|START|COMMIT|ROLLBACK|ABORT|CALL|EXECUTE|DO|COPY|VALUES|SAVEPOINT|RELEASE|TABLE|VACUUM)"
      "(?=[\\s\"])[^\"{\\\\]*)");
  std::size_t found = 0;
  const auto sources = std::filesystem::path(DLOCK_SOURCE_DIR) / "backends" / "postgres";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(sources)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    std::string source(std::istreambuf_iterator<char>(file), {});
    source = std::regex_replace(source, std::regex("//[^\\n]*"), "");
    for (std::sregex_iterator at(source.begin(), source.end(), literal), end; at != end; ++at, ++found) {
      std::string beginning = std::regex_replace(at->str(1), std::regex("\\s+"), " ");
      if (beginning.ends_with(' ')) beginning.pop_back();
      EXPECT_TRUE(std::any_of(all.begin(), all.end(),
                              [&](const auto& each) { return each.second.find(beginning) != std::string::npos; }))
          << entry.path().filename() << ": \"" << beginning << "...\" is in none of the lists of AllStatements";
    }
  }
  EXPECT_GE(found, 40U);
}

}  // namespace

}  // namespace dlock::postgres
