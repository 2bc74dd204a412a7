// Identifiers made to break out of their quotes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::postgres {

// Good ones, so many and always the same: well-known attacks first, then pieces of SQL at random.
inline std::vector<std::string> hostile_names(std::size_t count, std::size_t most_bytes = 63) {
  std::vector<std::string> names = {
      // SQL, and templates of it
      "\"", "\"\"", "\"; DROP TABLE x; --", "a\".\"b", "'; SELECT 1; --", "$1", "$$", "{lease}", "{now}", "/* x */",
      "-- x", "\\\"", "E'\\''", "U&\"\"", " ", "SELECT", "a.b", "\u00e9", "\u6f22\u5b57",
      // characters
      "\U0001f512", "%s%n", "?", ":x", "\u2019", "\xef\xbc\x82", "dlock:x", "{", "}", "{{us}}"};
  constexpr std::array<std::string_view, 27> pieces = {
      "\"", "\"\"", "'", "''", "\\",      "$1", "$x$", ";",      "--",     "/*",         "*/", "(",     ")", ".",
      " ",  "{",    "}", "us", "{lease}", "a",  "Z",   "\u00e9", "\u6f22", "\U0001f512", ",",  "DROP ", "E'"};
  std::mt19937 random(20260721);  // NOLINT(cert-msc*): the same each time
  while (names.size() < count) {
    std::string name;
    for (std::size_t parts = 1 + random() % 20; parts > 0; --parts) {
      const std::string_view piece = pieces[random() % pieces.size()];
      if (name.size() + piece.size() <= most_bytes) name += piece;
    }
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace dlock::postgres
