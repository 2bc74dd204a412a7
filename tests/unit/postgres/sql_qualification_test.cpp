// Nothing that another role has created in a schema of the search_path, or a temporary schema, is run by a statement of
// ours or takes part in it: behind a pooler, and in a transaction of the caller's, the search_path is somebody else's.
#include "sql_qualification.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "all_statements.hpp"

namespace dlock::postgres {

namespace {

namespace fs = std::filesystem;

TEST(PostgresQualification, IsWholeInEveryStatement) {
  for (const Durability durability : {Durability::sync, Durability::async, Durability::unlogged}) {
    for (const auto& [name, sql] : all_statements("dlock", durability)) {
      EXPECT_EQ(unqualified_in(sql), Complaints{}) << name << ": " << sql;
    }
  }
}

// --- Statements that are made somewhere else than in the lists -------------------------------------------------------

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The literals of a source of C++, those that stand next to each other as one.
std::vector<std::string> literals_of(const std::string& source) {
  std::vector<std::string> literals;
  bool adjacent = false;
  const auto add = [&](const std::string& text) {
    if (!adjacent) literals.emplace_back();
    literals.back() += text;
    adjacent = true;
  };
  for (std::size_t at = 0; at < source.size(); ++at) {
    const char c = source[at];
    if (source.compare(at, 2, "//") == 0) {
      at = std::min(source.find('\n', at), source.size());
    } else if (source.compare(at, 6, "R\"sql(") == 0) {
      const std::size_t end = source.find(")sql\"", at);
      add(source.substr(at + 6, end - at - 6));
      at = end + 4;
    } else if (c == '\'') {
      for (++at; at < source.size() && source[at] != '\''; ++at) {
        if (source[at] == '\\') ++at;
      }
      adjacent = false;
    } else if (c == '"') {
      std::string text;
      for (++at; at < source.size() && source[at] != '"'; ++at) {
        if (source[at] == '\\') ++at;
        text += source[at];
      }
      add(text);
    } else if (std::isspace(static_cast<unsigned char>(c)) == 0) {
      adjacent = false;
    }
  }
  return literals;
}

bool begins_a_statement(const std::string& literal) {
  static const std::set<std::string> verbs = {
      "SELECT", "WITH",   "INSERT",  "UPDATE", "DELETE", "MERGE",  "CREATE",    "DROP",    "ALTER",  "TRUNCATE",
      "LOCK",   "LISTEN", "NOTIFY",  "SET",    "RESET",  "SHOW",   "BEGIN",     "START",   "COMMIT", "ROLLBACK",
      "ABORT",  "CALL",   "EXECUTE", "DO",     "COPY",   "VALUES", "SAVEPOINT", "RELEASE", "TABLE",  "VACUUM"};
  const std::size_t start = literal.find_first_not_of(" \n");
  if (start == std::string::npos) return false;
  const std::size_t end = literal.find_first_of(" \n", start);
  return verbs.contains(literal.substr(start, end == std::string::npos ? end : end - start));
}

// Up to what is filled in, with one blank between words.
std::string beginning_of(const std::string& literal) {
  std::string out;
  for (const char c : literal.substr(0, literal.find('{'))) {
    const bool blank = c == ' ' || c == '\n';
    if (!blank) {
      out += c;
    } else if (!out.empty() && out.back() != ' ') {
      out += ' ';
    }
  }
  return out.substr(0, out.find_last_not_of(' ') + 1);
}

TEST(PostgresQualification, IsLookedForInEveryStatementOfTheSources) {
  auto all = all_statements("dlock", Durability::sync);
  const auto unlogged = all_statements("dlock", Durability::unlogged);
  all.insert(all.end(), unlogged.begin(), unlogged.end());
  std::size_t found = 0;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(DLOCK_SOURCE_DIR) / "backends" / "postgres")) {
    const auto extension = entry.path().extension();
    if (extension != ".cpp" && extension != ".hpp") continue;
    for (const std::string& literal : literals_of(read(entry.path()))) {
      if (!begins_a_statement(literal)) continue;
      ++found;
      const std::string beginning = beginning_of(literal);
      const bool listed = std::any_of(all.begin(), all.end(), [&](const auto& statement) {
        return statement.second.find(beginning) != std::string::npos;
      });
      EXPECT_TRUE(listed) << entry.path().filename() << ": \"" << beginning
                          << "...\" is in none of the lists of all_statements.hpp, so nobody looks at it";
    }
  }
  EXPECT_GE(found, 40U);
}

// --- The check itself ------------------------------------------------------------------------------------------------

TEST(PostgresQualification, FindsWhatIsNot) {
  const std::vector<std::pair<std::string, Complaints>> planted = {
      {"SELECT a * 2", {"operator *"}},
      {"SELECT a FROM \"s\".\"t\" WHERE a <= $1::pg_catalog.int8", {"operator <="}},
      {"UPDATE \"s\".\"t\" SET a = b || c WHERE d OPERATOR(pg_catalog.=) 1", {"operator ||"}},
      {"UPDATE \"s\".\"t\" SET a = 1 WHERE a = 1", {"operator ="}},
      {"UPDATE \"s\".\"t\" SET a = (a = b)", {"operator ="}},
      {"SELECT - a", {"operator -"}},
      {"SELECT a OPERATOR(=) b", {"operator without a schema"}},
      {"SELECT a OPERATOR(public.=) b", {"operator without a schema"}},
      {"SELECT now()", {"function now"}},
      {"SELECT public.now()", {"function now"}},
      {"SELECT \"s\".\"now\"()", {"function now"}},
      {"SELECT pg_catalog.now(), clock_timestamp()", {"function clock_timestamp"}},
      {"SELECT $1::text", {"type text"}},
      {"SELECT $1::text[]", {"type text"}},
      {"SELECT $1::public.text", {"type public"}},
      {"SELECT interval '1 day'", {"type interval"}},
      {"SELECT CAST(a AS pg_catalog.text)", {"CAST"}},
      {"CREATE TABLE IF NOT EXISTS \"s\".\"t\" (a text, b pg_catalog.int8, c bigint)", {"type text", "type bigint"}},
      {"CREATE TABLE IF NOT EXISTS \"s\".\"t\" (a pg_catalog.int8 CHECK (a > 1)) WITH (fillfactor = 50)",
       {"operator >"}},
      {"SELECT a ORDER BY a COLLATE \"C\"", {"collation C"}},
      {"SELECT a FROM t", {"relation t"}},
      {"SELECT a FROM \"t\"", {"relation t"}},
      {"SELECT a FROM \"s\".\"t\", pg_class", {"relation pg_class"}},
      {"SELECT a FROM pg_catalog.pg_class AS c JOIN pg_locks AS l ON true", {"relation pg_locks"}},
      {"INSERT INTO t (a) VALUES (1)", {"relation t", "function t"}},
      {"UPDATE t SET a = 1", {"relation t"}},
      {"WITH u AS (SELECT 1) SELECT 1 FROM f", {"relation f"}},
      {"SELECT a IN (1, 2)", {"IN"}},
      {"SELECT a OPERATOR(pg_catalog.=) ANY (ARRAY[1]), b = ANY (ARRAY[1])", {"operator =", "ANY without an operator"}},
      {"SELECT a BETWEEN 1 AND 2", {"BETWEEN"}},
      {"SELECT a LIKE 'x'", {"LIKE", "type LIKE"}},
      {"SELECT NULLIF(a, b)", {"NULLIF"}},
      {"SELECT a IS DISTINCT FROM b", {"IS DISTINCT FROM", "relation b"}},
      {"SELECT a IS NOT DISTINCT FROM b", {"IS DISTINCT FROM", "relation b"}},
      {"SELECT CASE a WHEN 1 THEN 2 END", {"CASE with an operand"}},
      {"SELECT 1 FROM \"s\".\"t\" JOIN \"s\".\"u\" USING (a)", {"USING"}},
  };
  for (const auto& [sql, expected] : planted) {
    const Complaints complaints = unqualified_in(sql);
    for (const std::string& complaint : expected) {
      EXPECT_NE(std::find(complaints.begin(), complaints.end(), complaint), complaints.end())
          << complaint << " is not found in " << sql;
    }
    EXPECT_LE(complaints.size(), expected.size()) << sql;
  }
}

TEST(PostgresQualification, FindsNothingElse) {
  for (const std::string sql : {
           "SELECT pg_catalog.count(*) FROM pg_catalog.pg_class AS c WHERE c.oid OPERATOR(pg_catalog.=) 1",
           "UPDATE \"s\".\"t\" AS l SET a = q.a, b = greatest(l.b OPERATOR(pg_catalog.+) 1, 2) FROM \"s\".\"q\" AS q",
           "WITH q AS MATERIALIZED (SELECT * FROM pg_catalog.unnest($1::pg_catalog.text[]) AS q (name)) SELECT 1 FROM "
           "q",
           "INSERT INTO \"s\".\"t\" AS t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET a = excluded.a, b = 1",
           "SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) OPERATOR(pg_catalog.*) 2)::pg_catalog.int8",
           "SELECT a FROM \"s\".\"t\" FOR NO KEY UPDATE SKIP LOCKED",
           "SELECT 1 UNION ALL SELECT pg_catalog.interval '1 day' ORDER BY 1",
           "CREATE TABLE IF NOT EXISTS \"s\".\"t\" (a pg_catalog.text COLLATE pg_catalog.\"C\" PRIMARY KEY, "
           "b pg_catalog.int8 CHECK (pg_catalog.abs(b) OPERATOR(pg_catalog.>) 1)) WITH (fillfactor = 50)",
       }) {
    EXPECT_EQ(unqualified_in(sql), Complaints{}) << sql;
  }
}

}  // namespace

}  // namespace dlock::postgres
