// Arbitrary text on its way into SQL, where it must stay data, and arbitrary errors of a server or of libpq.
#include <string>
#include <string_view>
#include <vector>

#include <dlock/error.hpp>

#include "backends/postgres/sql/advisory_key.hpp"
#include "backends/postgres/sql/connect_failure.hpp"
#include "backends/postgres/sql/identifier.hpp"
#include "backends/postgres/sql/sqlstate.hpp"
#include "backends/postgres/sql/statements.hpp"
#include "tests/fuzz/checks.hpp"

namespace {

using dlock::fuzz::require;

// Reads what is in quotes as the server does: a quote is doubled (identifiers) or escaped (elements of arrays). Moves
// `at` behind the closing quote.
std::string read_quoted(std::string_view text, std::size_t& at, bool doubled) {
  std::string out;
  require(at < text.size() && text[at] == '"');
  for (++at; at < text.size(); ++at) {
    if (!doubled && text[at] == '\\') {
      require(++at < text.size());
    } else if (text[at] == '"') {
      if (!doubled || at + 1 == text.size() || text[at + 1] != '"') break;
      ++at;
    }
    out += text[at];
  }
  require(at < text.size());
  ++at;
  return out;
}

void check_identifier(std::string_view text) {
  if (dlock::postgres::problem_with_identifier(text)) return;
  const std::string quoted = dlock::postgres::quote_identifier(text);
  std::size_t at = 0;
  require(read_quoted(quoted, at, true) == text && at == quoted.size());
  require(dlock::postgres::channel_of(text).size() <= dlock::postgres::max_identifier_bytes);
}

void check_array(std::string_view text) {
  std::vector<std::string_view> elements;
  while (!text.empty()) elements.push_back(dlock::fuzz::take_line(text));
  const std::string array = dlock::postgres::text_array(elements);
  std::size_t at = 1;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    require(read_quoted(array, at, false) == elements[i]);
    require(at < array.size() && array[at] == (i + 1 == elements.size() ? '}' : ','));
    ++at;
  }
  require(array.front() == '{' && array.back() == '}' && (elements.empty() || at == array.size()));
}

void check_error(std::string_view text) {
  const std::string line = dlock::postgres::in_one_line(text);
  require(line.find('\n') == std::string::npos);
  const dlock::Failure failure = dlock::postgres::connect_failure("host:5432/db", text);
  require(failure.code && failure.detail.starts_with("host:5432/db: "));
  (void)dlock::postgres::meaning_of(text.substr(0, 5));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = dlock::fuzz::as_text(data, size);
  check_identifier(text);
  check_array(text);
  check_error(text);
  (void)dlock::postgres::parse_key_scheme(text);
  return 0;
}
