// What of a statement the server would look up along the search_path, where any role that may create in one of its
// schemas can put something of its own: functions, operators, types, collations and relations without their schema, and
// words of the grammar that stand for an operator without one (IN, BETWEEN, LIKE, NULLIF, ...).
//
//   EXPECT_EQ(unqualified_in("SELECT a = 1 FROM s.t"), (Complaints{"operator =", "relation s.t"}));
#pragma once

#include <map>
#include <regex>
#include <string>
#include <vector>

namespace dlock::postgres {

using Complaints = std::vector<std::string>;

// Removes what is good, and complains of what is left.
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

[[nodiscard]] inline Complaints unqualified_in(const std::string& sql) {
  return SqlQualification(sql).complaints();
}

}  // namespace dlock::postgres
