// The elements of array literals that are parameters of statements.
#pragma once

#include <string>
#include <vector>

namespace dlock::postgres {

// The inverse of text_array() and bigint_array().
[[nodiscard]] inline std::vector<std::string> elements_of(const std::string& array) {
  std::vector<std::string> elements;
  bool quoted = false;
  for (std::size_t at = 0; at < array.size(); ++at) {
    const char c = array[at];
    if (!quoted && (c == '{' || c == ',')) {
      if (array.at(at + 1) != '}') elements.emplace_back();
    } else if (c == '"') {
      quoted = !quoted;
    } else if (quoted || c != '}') {
      elements.back() += quoted && c == '\\' ? array.at(++at) : c;
    }
  }
  return elements;
}

}  // namespace dlock::postgres
