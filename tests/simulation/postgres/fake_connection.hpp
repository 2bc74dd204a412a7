// The wire of a fake PostgreSQL server, and the array literals that are parameters of statements.
#pragma once

#include <string>
#include <vector>

#include "backends/postgres/sql/common.hpp"
#include "tests/simulation/sql/fake_connection.hpp"

namespace dlock::postgres {

[[nodiscard]] inline FakeTraits fake_traits() {
  return {.info = {.version = 150020, .endpoint = "fake:5432/locks"},
          .heartbeat = heartbeat_sql,
          .code_word = "SQLSTATE ",
          .full = "FATAL:  53300: sorry, too many clients already"};
}

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
