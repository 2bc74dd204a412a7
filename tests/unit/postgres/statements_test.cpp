// All statements of dlock: their form, when they read the clock, and that nothing of another role takes part in them.
#include "backends/postgres/sql/statements.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
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

using Complaints = std::vector<std::string>;

// Complains of each part of a statement that the server would look up along the search_path, where any role that may
// create in one of its schemas can put something of its own: functions, operators, types, collations and relations
// without their schema, and words of the grammar that stand for an operator without one (IN, BETWEEN, LIKE, NULLIF,
// ...). Removes what is good, and complains of what is left.
class SqlQualification {
 public:
  explicit SqlQualification(const std::string& sql) : sql_(std::regex_replace(sql, compiled("'(?:[^']|'')*'"), "''")) {
    const std::regex& query = compiled(R"((\w+) AS (?:(?:NOT )?MATERIALIZED )?\()");
    for (std::sregex_iterator at(sql_.begin(), sql_.end(), query), end; at != end; ++at) queries_ += "|" + at->str(1);
  }

  // From the innermost parentheses outwards: what is between a pair of them becomes {}.
  [[nodiscard]] Complaints complaints() {
    const std::regex& system_operator = compiled(R"(OPERATOR\(pg_catalog\.[-+*/<>=~!@#%^&|`?]+\))");
    const std::regex& innermost = compiled(R"(\(([^()]*)\))");
    const std::regex& columns = compiled(R"(EXISTS "[^"]*"\."[^"]*" $)");
    const std::regex& storage = compiled(R"(^CREATE .*WITH $)");
    sql_ = std::regex_replace(sql_, system_operator, "OPER");
    for (std::smatch found; std::regex_search(sql_, found, innermost);) {
      const std::string before = found.prefix();
      std::string level = found.str(1);
      if (std::regex_search(before, columns)) complain(level, R"((?:^|, )\w+ (?!pg_catalog\.)(\w+))", "type ");
      if (!std::regex_search(before, storage)) look_at(level);
      sql_ = before + "{}" + found.suffix().str();
    }
    look_at(sql_);
    return complaints_;
  }

 private:
  // Each is compiled once.
  static const std::regex& compiled(const std::string& pattern) {
    static std::map<std::string, std::regex> patterns;
    return patterns.try_emplace(pattern, pattern).first->second;
  }
  static void remove(std::string& text, const std::string& good) {
    text = std::regex_replace(text, compiled(good), " ");
  }
  void complain(const std::string& text, const std::string& bad, const std::string& what) {
    for (std::sregex_iterator at(text.begin(), text.end(), compiled(bad)), end; at != end; ++at) {
      complaints_.push_back(what + (what.ends_with(' ') ? at->str(1) : ""));
    }
  }

  // Without parentheses.
  void look_at(std::string text) {
    complain(text, R"(\bCASE (?!WHEN))", "CASE with an operand");
    complain(text, R"(\bIS (?:NOT )?DISTINCT)", "IS DISTINCT FROM");
    // Relations: after these words, and after each comma of a FROM.
    remove(text, "(?:FOR NO KEY|FOR|DO) UPDATE|epoch FROM");
    const std::regex& list =
        compiled(R"(\bFROM\b((?:(?!\b(?:WHERE|ON|GROUP|ORDER|LIMIT|FOR|UNION|RETURNING|SELECT)\b).)*))");
    for (std::smatch found; std::regex_search(text, found, list);) {
      const std::string relations = std::regex_replace(found.str(1), compiled(","), " JOIN");
      text = found.prefix().str() + "JOIN" + relations + found.suffix().str();
    }
    remove(text,
           R"(\b(?:JOIN|INTO|UPDATE) (?:"[^"]*"\."[^"]*"(?: \{\})?|pg_catalog\.\w+|\{\}|LATERAL \{\}|ROWS JOIN))");
    complain(text, R"(\b(?:JOIN|INTO|UPDATE) (?!(?:LATERAL)" + queries_ + R"()\b)("?\w+))", "relation ");
    // Types, collations and texts.
    remove(text, R"(::pg_catalog\.\w+|COLLATE pg_catalog\."C"|pg_catalog\.\w+ '')");
    remove(text, R"(\b(?:SELECT|THEN|ELSE|WHEN|DEFAULT|AND|OR|NOT|BY|OPER) '')");
    complain(text, R"(::(\w+))", "type ");
    complain(text, R"((\w+) '')", "type ");
    complain(text, R"(COLLATE (\S+))", "collation ");
    // Operators: a star and an assignment are none.
    remove(text, R"(::|SELECT \*|^\*$)");
    const std::regex& set = compiled(R"(\bSET\b((?:(?!\b(?:WHERE|JOIN|RETURNING)\b).)*))");
    for (std::smatch found; std::regex_search(text, found, set);) {
      const std::string values = std::regex_replace(found.str(1), compiled(R"((^|,) \w+ =)"), "$1");
      text = found.prefix().str() + values + found.suffix().str();
    }
    remove(text, "OPER ANY");
    complain(text, "([-+*/<>=~!@#%^&|`?]+)", "operator ");
    // Functions: what comes before parentheses and is not of the grammar.
    remove(text, R"(pg_catalog\.\w+ ?\{\}|\bAS \w+ ?\{\}|NOT EXISTS "[^"]*"\."[^"]*" \{\})");
    remove(text, R"(\b(?:greatest|least|coalesce|extract|EXISTS|VALUES|JOIN|AS|AND|OR|NOT|CHECK|KEY|WITH|LATERAL|ARRAY)"
                 R"(|MATERIALIZED|OVER|FILTER|WHERE|ON|CONFLICT|THEN|ELSE|WHEN|SELECT|OPER) ?\{\})");
    complain(text, R"re((\w+)"? ?\{\})re", "function ");
    // Words of the grammar.
    remove(text, "UNION ALL");
    complain(text, R"(\b(IN|BETWEEN|LIKE|ILIKE|SIMILAR|NULLIF|USING|NATURAL|OVERLAPS|CAST|SOME|ALL|ANY)\b)", "word ");
  }

  std::string sql_;
  std::string queries_;  // of WITH: of those no schema can be said
  Complaints complaints_;
};

[[nodiscard]] Complaints unqualified_in(const std::string& sql) {
  return SqlQualification(sql).complaints();
}

// Hazard: operators of another role in the `search_path`
TEST(PostgresQualification, EveryStatement_NamesItsSchema) {
  std::set<std::string> seen;  // but for the table's name, which is in quotes
  for (const Durability durability : {Durability::sync, Durability::async, Durability::unlogged}) {
    for (const auto& [name, sql] : all_statements("dlock", durability)) {
      const std::string table = "\"" + name.substr(0, name.find('.')) + "\"";
      std::string form = sql;
      for (auto at = form.find(table); at != form.npos; at = form.find(table, at + 1))
        form.replace(at, table.size(), "\"\"");
      if (!seen.insert(std::move(form)).second) continue;
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
          << entry.path().filename() << ": \"" << beginning << "...\" is in none of the lists of AllStatements";
    }
  }
  EXPECT_GE(found, 40U);
}

TEST(PostgresQualification, UnqualifiedName_IsFound) {
  for (const char* const sql :
       {"SELECT a * 2", "UPDATE \"s\".\"t\" SET a = 1, b = 2 WHERE a = 1", "SELECT a OPERATOR(public.=) b",
        "SELECT public.now()", "SELECT pg_catalog.now(), clock_timestamp()", "SELECT $1::text",
        "SELECT interval '1 day'", "CREATE TABLE IF NOT EXISTS \"s\".\"t\" (a text)",
        "SELECT a ORDER BY a COLLATE \"C\"", "SELECT a FROM \"t\"", "SELECT a FROM \"s\".\"t\", pg_class",
        "SELECT a IN (1, 2)", "SELECT a OPERATOR(pg_catalog.=) ANY (ARRAY[1]), b = ANY (ARRAY[1])",
        "SELECT a BETWEEN 1 AND 2", "SELECT a IS NOT DISTINCT FROM b", "SELECT CASE a WHEN 1 THEN 2 END"}) {
    EXPECT_NE(unqualified_in(sql), Complaints{}) << sql;
  }
}

}  // namespace

}  // namespace dlock::postgres
