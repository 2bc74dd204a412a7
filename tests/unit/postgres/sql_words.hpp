// SQL taken apart as the server does it, as far as the statements of dlock need it.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::postgres {

struct SqlWord {
  enum class Kind { word, identifier, text, parameter, sign };
  Kind kind;
  std::string text;  // what is between the quotes, or the number of the parameter

  friend bool operator==(const SqlWord&, const SqlWord&) = default;
};

inline std::vector<SqlWord> words_of(std::string_view sql) {
  const auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  std::vector<SqlWord> words;
  for (std::size_t at = 0; at < sql.size();) {
    const char c = sql[at];
    if (c == ' ') {
      ++at;
    } else if (c == '"' || c == '\'') {
      std::string text;
      for (++at;; ++at) {
        if (at >= sql.size()) throw std::runtime_error("a quote without its other");
        if (sql[at] == c && (at + 1 >= sql.size() || sql[at + 1] != c)) break;
        if (sql[at] == c) ++at;
        text += sql[at];
      }
      ++at;
      words.push_back({c == '"' ? SqlWord::Kind::identifier : SqlWord::Kind::text, text});
    } else if (c == '$' || is_letter(c)) {
      const std::size_t start = c == '$' ? at + 1 : at;
      std::size_t end = start;
      while (end < sql.size() && is_letter(sql[end])) ++end;
      words.push_back(
          {c == '$' ? SqlWord::Kind::parameter : SqlWord::Kind::word, std::string(sql.substr(start, end - start))});
      at = end;
    } else {
      words.push_back({SqlWord::Kind::sign, std::string(1, c)});
      ++at;
    }
  }
  return words;
}

}  // namespace dlock::postgres
