// What of a statement the server would look up along the search_path, where any role that may create in one of its
// schemas can put something of its own: functions, operators, types, collations and relations without their schema, and
// words of the grammar that stand for an operator without one (IN, BETWEEN, LIKE, NULLIF, ...).
//
//   EXPECT_EQ(unqualified_in("SELECT a = 1 FROM s.t"), (Complaints{"operator ="}));
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sql_words.hpp"

namespace dlock::postgres {

using Complaints = std::vector<std::string>;

class SqlQualification {
 public:
  explicit SqlQualification(std::string_view sql) : words_(words_of(sql)) {}

  [[nodiscard]] Complaints complaints() {
    find_named_queries();
    for (at_ = 0; at_ < words_.size(); ++at_) look();
    return complaints_;
  }

 private:
  using Kind = SqlWord::Kind;
  // What is between a pair of parentheses.
  struct Level {
    bool after_from = false;  // a comma leads to the next relation
    bool after_set = false;   // SET column = value, column = value
    bool storage = false;     // WITH (fillfactor = 50)
    bool columns = false;     // CREATE TABLE t (name type, ...)
  };

  [[nodiscard]] const SqlWord& word(std::ptrdiff_t offset) const {
    static const SqlWord none{Kind::sign, ""};
    const auto index = static_cast<std::ptrdiff_t>(at_) + offset;
    return index >= 0 && index < std::ssize(words_) ? words_[static_cast<std::size_t>(index)] : none;
  }
  [[nodiscard]] bool is_word(std::ptrdiff_t offset, std::string_view text) const {
    return word(offset).kind == Kind::word && word(offset).text == text;
  }
  [[nodiscard]] bool is_sign(std::ptrdiff_t offset, std::string_view text) const {
    return word(offset).kind == Kind::sign && word(offset).text == text;
  }
  [[nodiscard]] bool is_system(std::ptrdiff_t offset) const {
    return is_word(offset, "pg_catalog") && is_sign(offset + 1, ".");
  }
  void complain(const std::string& what) { complaints_.push_back(what); }

  // "name AS (", "name AS MATERIALIZED (": of those no schema can be said, and nothing else comes before them.
  void find_named_queries() {
    for (at_ = 0; at_ < words_.size(); ++at_) {
      const std::ptrdiff_t what = is_word(2, "NOT") ? 3 : 2;
      const bool as =
          is_word(1, "AS") && (is_sign(2, "(") || (is_word(what, "MATERIALIZED") && is_sign(what + 1, "(")));
      if (word(0).kind == Kind::word && as) queries_.insert(word(0).text);
    }
  }

  void look() {
    const SqlWord& here = word(0);
    if (here.kind == Kind::sign) return look_at_sign();
    if (here.kind == Kind::text && word(-1).kind == Kind::word) return look_at_text();
    if (here.kind == Kind::identifier && is_sign(1, "(")) return look_at_identifier();
    if (here.kind == Kind::word) look_at_word();
  }

  void look_at_sign() {
    static const std::string_view letters = "+-*/<>=~!@#%^&|`?";
    const std::string& sign = word(0).text;
    if (sign == "(") return enter();
    if (sign == ")") return leave();
    if (sign == "," && here().after_from && !relation_follows()) complain("relation " + word(1).text);
    if (sign == "," && here().columns) look_at_column();
    if (sign == ":" && is_sign(1, ":")) {
      if (!is_system(2)) complain("type " + word(2).text);
      ++at_;
      return;
    }
    if (letters.find(sign) == std::string_view::npos) return;
    const bool everything = sign == "*" && (is_word(-1, "SELECT") || (is_sign(-1, "(") && is_sign(1, ")")));
    const bool assignment =
        sign == "=" && (here().storage || (here().after_set && (is_word(-2, "SET") || is_sign(-2, ","))));
    if (everything || assignment) return;
    std::string whole = sign;
    for (; word(1).kind == Kind::sign && letters.find(word(1).text) != std::string_view::npos; ++at_) {
      whole += word(1).text;
    }
    complain("operator " + whole);
  }

  void enter() {
    const bool creates = !words_.empty() && words_.front().text == "CREATE";
    const bool storage = is_word(-1, "WITH");
    levels_.push_back({.storage = creates && storage, .columns = creates && levels_.size() == 1 && !storage});
    if (here().columns) look_at_column();
  }
  void leave() {
    if (levels_.size() > 1) levels_.pop_back();
  }
  [[nodiscard]] Level& here() { return levels_.back(); }

  void look_at_column() {
    if (!is_system(2)) complain("type " + word(2).text);
  }

  // interval '1 day': the name of a type, without its schema.
  void look_at_text() {
    static const std::set<std::string> before = {"SELECT", "THEN", "ELSE", "WHEN", "DEFAULT", "AND", "OR", "NOT", "BY"};
    if (before.contains(word(-1).text) || (is_sign(-2, ".") && is_word(-3, "pg_catalog"))) return;
    complain("type " + word(-1).text);
  }

  // The only ones with quotes that have parentheses behind them are tables with their columns.
  void look_at_identifier() {
    const bool table = is_sign(-1, ".") && word(-2).kind == Kind::identifier &&
                       (is_word(-3, "INTO") || (is_word(-3, "EXISTS") && is_word(-4, "NOT")));
    if (!table) complain("function " + word(0).text);
  }

  void look_at_word() {
    const std::string& text = word(0).text;
    if (text == "OPERATOR" && is_sign(1, "(")) return look_at_operator();
    if (text == "COLLATE" && !is_system(1)) return complain("collation " + word(1).text);
    if (text == "CASE" && !is_word(1, "WHEN")) return complain("CASE with an operand");
    if (text == "DISTINCT" && (is_word(-1, "IS") || is_word(-2, "IS"))) return complain("IS DISTINCT FROM");
    static const std::set<std::string> hidden = {"IN",    "BETWEEN", "LIKE",     "ILIKE", "SIMILAR", "NULLIF",
                                                 "USING", "NATURAL", "OVERLAPS", "CAST",  "SOME",    "ALL"};
    const bool union_all = text == "ALL" && is_word(-1, "UNION");
    if (hidden.contains(text) && !union_all) return complain(text);
    if (text == "ANY" && !operator_before()) return complain("ANY without an operator");
    follow(text);
    if (is_sign(1, "(")) look_at_call(text);
  }

  void look_at_operator() {
    if (!is_system(2)) complain("operator without a schema");
    while (at_ < words_.size() && !is_sign(0, ")")) ++at_;
  }

  // OPERATOR(pg_catalog.=), which has been looked at.
  [[nodiscard]] bool operator_before() const {
    if (!is_sign(-1, ")")) return false;
    std::ptrdiff_t before = -2;
    while (word(before).kind == Kind::sign && !is_sign(before, ".") && !word(before).text.empty()) --before;
    return is_sign(before, ".") && is_sign(before - 2, "(") && is_word(before - 3, "OPERATOR");
  }

  // Where in a statement we are.
  void follow(const std::string& text) {
    static const std::set<std::string> ends = {"WHERE", "ON", "GROUP", "ORDER", "LIMIT", "FOR", "UNION", "RETURNING"};
    if (ends.contains(text)) here() = {.storage = here().storage, .columns = here().columns};
    const bool of_extract = text == "FROM" && is_sign(-2, "(") && is_word(-3, "extract");
    const bool update = text == "UPDATE" && !is_word(-1, "FOR") && !is_word(-1, "KEY") && !is_word(-1, "DO");
    if (text == "FROM" && !of_extract) here() = {.after_from = true, .storage = here().storage};
    if (text == "SET") here() = {.after_set = true};
    const bool relation = (text == "FROM" && !of_extract) || text == "JOIN" || text == "INTO" || update;
    const bool nothing = word(1).kind == Kind::sign && !is_sign(1, "(");
    if (relation && !nothing && !relation_follows()) complain("relation " + word(1).text);
  }

  [[nodiscard]] bool relation_follows() const {
    if (is_sign(1, "(") || is_word(1, "LATERAL") || (is_word(1, "ROWS") && is_word(2, "FROM")) || is_system(1)) {
      return true;
    }
    if (word(1).kind == Kind::identifier) return is_sign(2, ".") && word(3).kind == Kind::identifier;
    return word(1).kind == Kind::word && queries_.contains(word(1).text) && !is_sign(2, ".") && !is_sign(2, "(");
  }

  void look_at_call(const std::string& text) {
    // Of the grammar: no search_path changes what they are. What GREATEST and LEAST compare with belongs to the type.
    static const std::set<std::string> grammar = {
        "greatest", "coalesce", "extract", "EXISTS",   "VALUES", "FROM", "AS",    "AND",          "OR",    "NOT",
        "CHECK",    "KEY",      "WITH",    "LATERAL",  "JOIN",   "ANY",  "ARRAY", "MATERIALIZED", "least", "OVER",
        "FILTER",   "WHERE",    "ON",      "CONFLICT", "THEN",   "ELSE", "WHEN",  "SELECT"};
    const bool columns_of_alias = is_word(-1, "AS");
    const bool system = is_sign(-1, ".") && is_word(-2, "pg_catalog");
    if (!grammar.contains(text) && !columns_of_alias && !system) complain("function " + text);
  }

  const std::vector<SqlWord> words_;
  std::size_t at_ = 0;
  std::vector<Level> levels_ = {Level{}};
  std::set<std::string> queries_;
  Complaints complaints_;
};

[[nodiscard]] inline Complaints unqualified_in(std::string_view sql) {
  return SqlQualification(sql).complaints();
}

}  // namespace dlock::postgres
