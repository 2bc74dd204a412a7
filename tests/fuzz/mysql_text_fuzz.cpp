// Arbitrary text on its way into SQL, where it must stay data, and arbitrary rows and errors of a server.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/error.hpp>

#include "backends/common/sql/lock_rows.hpp"
#include "backends/mysql/client/preamble.hpp"
#include "backends/mysql/client/query_text.hpp"
#include "backends/mysql/errors.hpp"
#include "backends/mysql/sql/questions.hpp"
#include "backends/mysql/sql/text.hpp"
#include "tests/fuzz/checks.hpp"
#include "util/number.hpp"

namespace {

using dlock::fuzz::require;
using dlock::fuzz::take_line;
namespace mysql = dlock::mysql;
namespace sql = dlock::sql;

// --- To the server ---------------------------------------------------------------------------------------------------

void skip(std::string_view& text, std::string_view expected) {
  require(text.starts_with(expected));
  text.remove_prefix(expected.size());
}

// As the server reads a binary literal.
std::string read_literal(std::string_view& text) {
  std::string bytes;
  skip(text, text.starts_with("X") ? "X'" : "'");
  while (!text.starts_with("'")) {
    const auto byte = dlock::util::parse_number<unsigned>(text.substr(0, 2), 16);
    require(byte.has_value());
    bytes += static_cast<char>(*byte);
    text.remove_prefix(2);
  }
  skip(text, "'");
  return bytes;
}

void read_parameter(std::string_view& text, char mark, const sql::Parameter& parameter) {
  if (mark == '#') return skip(text, std::to_string(*dlock::util::parse_number<long long>(parameter.value())));
  parameter ? require(read_literal(text) == *parameter) : skip(text, "NULL");
}

// The first line is a statement, and each of the others a parameter; one that is empty is NULL.
void check_query(std::string_view text) {
  const sql::Statement statement{"UPDATE " + std::string(take_line(text))};
  sql::Command command{.statement = &statement};
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    command.params.push_back(line.empty() ? std::nullopt : sql::Parameter(line));
  }
  const auto written = mysql::text_of({.commands = {command}});
  const mysql::Prepared nothing;
  const auto prepared = mysql::text_of({.commands = {command}}, &nothing);
  require(written.ok() == prepared.ok());
  if (!written.ok()) return;
  std::string_view out = written.value().text;
  std::string_view executed = prepared.value().text;
  skip(executed, "PREPARE d0 FROM ");
  const std::string known = read_literal(executed);
  require(known.size() == statement.sql.size());
  skip(executed, "; EXECUTE d0");
  auto parameter = command.params.begin();
  for (std::size_t i = 0; i < statement.sql.size(); ++i) {
    const char c = statement.sql[i];
    require(known[i] == (c == '#' ? '?' : c));
    if (c != '?' && c != '#') {
      skip(out, {&c, 1});
      continue;
    }
    skip(executed, parameter == command.params.begin() ? " USING " : ", ");
    read_parameter(out, c, *parameter);
    read_parameter(executed, c, *parameter);
    ++parameter;
  }
  require(out.empty() && executed.empty() && parameter == command.params.end());
}

void check_identifier(std::string_view text) {
  const std::string quoted = mysql::quoted(text);
  require(quoted.front() == '`' && quoted.back() == '`' && quoted.size() >= 2);
  std::string read;
  for (std::size_t i = 1; i + 1 < quoted.size(); ++i) {
    read += quoted[i];
    if (quoted[i] == '`') require(quoted[++i] == '`' && i + 1 < quoted.size());
  }
  require(read == text);
  if (!mysql::problem_with_schema(text)) require(quoted.size() == text.size() + 2);
}

// --- From the server -------------------------------------------------------------------------------------------------

// A row in each line, with a tab between two columns; one that is empty is NULL.
sql::Rows rows_of(std::string_view text) {
  sql::Rows rows;
  while (!text.empty()) {
    std::string_view line = take_line(text);
    auto& row = rows.rows.emplace_back();
    for (bool more = true; more;) {
      const std::size_t end = line.find('\t');
      const std::string_view column = line.substr(0, end);
      row.push_back(column.empty() ? std::nullopt : std::optional<std::string>(column));
      more = end != std::string_view::npos;
      if (more) line.remove_prefix(end + 1);
    }
  }
  return rows;
}

void check_rows(std::string_view text) {
  const sql::Rows rows = rows_of(text);
  for (const auto kind : {dlock::LockKind::lock, dlock::LockKind::read_write, dlock::LockKind::semaphore}) {
    require(sql::read_infos(kind, rows).size() <= rows.size());
  }
  require(mysql::read_uncommitted({{}, rows, rows}).size() == rows.size());
  const auto server = mysql::read_answer({rows, rows, rows}, {.endpoint = "host:3306"}, mysql::Pooler::detect);
  require(server.ok() || server.failure().detail.starts_with("host:3306: "));
}

void check_error(std::string_view text) {
  const std::string_view number = take_line(text);
  const unsigned error = dlock::util::parse_number<unsigned>(number).value_or(2002);
  const dlock::Failure failure = mysql::connect_failure("host:3306/db", error, text);
  require(failure.code && failure.detail.starts_with("host:3306/db: "));
  require(mysql::is_of_library(error) || !mysql::ends_session(error) ||
          mysql::meaning_of(error).remedy == sql::Remedy::reconnect);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = dlock::fuzz::as_text(data, size);
  check_query(text);
  check_identifier(text);
  check_rows(text);
  check_error(text);
  return 0;
}
