// Nothing that another role has created in a schema of the search_path, or a temporary schema, is run by a statement of
// ours or takes part in it: behind a pooler, and in a transaction of the caller's, the search_path is somebody else's.
#include "sql_qualification.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "all_statements.hpp"

namespace dlock::postgres {

namespace {

TEST(PostgresQualification, EveryStatement_NamesItsSchema) {
  std::set<std::string> seen;
  for (const Durability durability : {Durability::sync, Durability::async, Durability::unlogged}) {
    for (const auto& [name, sql] : all_statements("dlock", durability)) {
      if (!seen.insert(sql).second) continue;
      EXPECT_EQ(unqualified_in(sql), Complaints{}) << name << ": " << sql;
    }
  }
}

// Statements that are made somewhere else than in the lists would not be looked at: of each literal that begins like
// one, what comes before the first hole is in one of them.
TEST(PostgresQualification, Sources_HaveNoOtherStatement) {
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
          << entry.path().filename() << ": \"" << beginning << "...\" is in none of the lists of all_statements.hpp";
    }
  }
  EXPECT_GE(found, 40U);
}

// --- The check itself ------------------------------------------------------------------------------------------------

TEST(PostgresQualification, UnqualifiedName_IsFound) {
  const std::vector<std::pair<std::string, Complaints>> planted = {
      {"SELECT a * 2", {"operator *"}},
      {"SELECT a FROM \"s\".\"t\" WHERE a <= $1::pg_catalog.int8", {"operator <="}},
      {"UPDATE \"s\".\"t\" SET a = b || c WHERE d OPERATOR(pg_catalog.=) 1", {"operator ||"}},
      {"UPDATE \"s\".\"t\" SET a = 1, b = 2 WHERE a = 1", {"operator ="}},
      {"UPDATE \"s\".\"t\" SET a = (a = b)", {"operator ="}},
      {"SELECT - a", {"operator -"}},
      {"SELECT a OPERATOR(=) b", {"operator =", "function OPERATOR"}},
      {"SELECT a OPERATOR(public.=) b", {"operator =", "function OPERATOR"}},
      {"SELECT now()", {"function now"}},
      {"SELECT public.now()", {"function now"}},
      {"SELECT \"s\".\"now\"()", {"function now"}},
      {"SELECT pg_catalog.now(), clock_timestamp()", {"function clock_timestamp"}},
      {"SELECT $1::text", {"type text"}},
      {"SELECT $1::text[]", {"type text"}},
      {"SELECT $1::public.text", {"type public"}},
      {"SELECT interval '1 day'", {"type interval"}},
      {"SELECT CAST(a AS pg_catalog.text)", {"function CAST", "word CAST"}},
      {"CREATE TABLE IF NOT EXISTS \"s\".\"t\" (a text, b pg_catalog.int8, c bigint)", {"type text", "type bigint"}},
      {"CREATE TABLE IF NOT EXISTS \"s\".\"t\" (a pg_catalog.int8 CHECK (a > 1)) WITH (fillfactor = 50)",
       {"operator >"}},
      {"SELECT a ORDER BY a COLLATE \"C\"", {"collation \"C\""}},
      {"SELECT a FROM t", {"relation t"}},
      {"SELECT a FROM \"t\"", {"relation \"t"}},
      {"SELECT a FROM \"s\".\"t\", pg_class", {"relation pg_class"}},
      {"SELECT a FROM pg_catalog.pg_class AS c JOIN pg_locks AS l ON true", {"relation pg_locks"}},
      {"INSERT INTO t (a) VALUES (1)", {"relation t", "function t"}},
      {"UPDATE t SET a = 1", {"relation t"}},
      {"WITH u AS (SELECT 1) SELECT 1 FROM f", {"relation f"}},
      {"SELECT a IN (1, 2)", {"function IN", "word IN"}},
      {"SELECT a OPERATOR(pg_catalog.=) ANY (ARRAY[1]), b = ANY (ARRAY[1])",
       {"operator =", "function ANY", "word ANY"}},
      {"SELECT a BETWEEN 1 AND 2", {"word BETWEEN"}},
      {"SELECT a LIKE 'x'", {"word LIKE", "type LIKE"}},
      {"SELECT NULLIF(a, b)", {"function NULLIF", "word NULLIF"}},
      {"SELECT a IS NOT DISTINCT FROM b", {"IS DISTINCT FROM", "relation b"}},
      {"SELECT CASE a WHEN 1 THEN 2 END", {"CASE with an operand"}},
      {"SELECT 1 FROM \"s\".\"t\" JOIN \"s\".\"u\" USING (a)", {"function USING", "word USING"}},
  };
  for (const auto& [sql, expected] : planted) {
    const Complaints complaints = unqualified_in(sql);
    EXPECT_TRUE(std::is_permutation(complaints.begin(), complaints.end(), expected.begin(), expected.end()))
        << sql << ": " << testing::PrintToString(complaints);
  }
}

}  // namespace

}  // namespace dlock::postgres
