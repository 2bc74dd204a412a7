#include "backends/mysql/client/query_text.hpp"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "util/number.hpp"

namespace dlock::mysql {

namespace {

Failure invalid(const std::string& why) {
  return {errc::invalid_argument, why};
}

const std::string& sql_of(const sql::Command& command) {
  return command.statement != nullptr ? command.statement->sql : command.text;
}

bool begins_with(std::string_view sql, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return sql.starts_with(word) && (sql.size() == word.size() || sql[word.size()] == ' ');
  });
}

bool writes(const sql::Command& command) {
  return !begins_with(sql_of(command), {"SELECT", "DO", "SET", "SHOW"});
}

bool is_about_a_transaction(const sql::Command& command) {
  return begins_with(sql_of(command), {"BEGIN", "START TRANSACTION", "COMMIT", "ROLLBACK"});
}

// No setting of the server and no character set changes the meaning of hexadecimal digits. X'' would be good, too, but
// is an integer to some servers.
void append_literal(std::string& out, std::string_view bytes) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  if (bytes.empty()) {
    out += "''";
    return;
  }
  out += "X'";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += digits[byte >> 4U];
    out += digits[byte & 0xfU];
  }
  out += '\'';
}

std::optional<std::string> append_parameter(std::string& out, char mark, const sql::Parameter& parameter) {
  if (mark == '#') {
    const auto number = util::parse_number<std::int64_t>(parameter.value_or(""));
    if (!number) return "a parameter that is not a whole number of 64 bits";
    out += std::to_string(*number);
  } else if (!parameter) {
    out += "NULL";
  } else if (parameter->find('\0') != std::string::npos) {
    return "a zero byte in a parameter";
  } else {
    append_literal(out, *parameter);
  }
  return std::nullopt;
}

std::optional<std::string> append_command(std::string& out, const sql::Command& command) {
  std::string_view sql = sql_of(command);
  auto parameter = command.params.begin();
  for (;;) {
    const std::size_t mark = std::min(sql.find_first_of("?#"), sql.size());
    out += sql.substr(0, mark);
    if (mark == sql.size()) break;
    if (parameter == command.params.end()) return "fewer parameters than marks";
    if (auto problem = append_parameter(out, sql[mark], *parameter)) return problem;
    ++parameter;
    sql.remove_prefix(mark + 1);
  }
  if (parameter != command.params.end()) return "more parameters than marks";
  return std::nullopt;
}

}  // namespace

Result<QueryText> text_of(const sql::Query& query) {
  const auto& commands = query.commands;
  if (commands.empty()) return invalid("a query without commands");
  QueryText out{.text = {}, .commands = commands.size()};
  out.wrapped = std::any_of(commands.begin(), commands.end() - 1, writes) &&
                std::none_of(commands.begin(), commands.end(), is_about_a_transaction);
  if (out.wrapped) out.text = "START TRANSACTION";
  for (const sql::Command& command : commands) {
    if (!out.text.empty()) out.text += "; ";
    if (const auto problem = append_command(out.text, command)) return invalid(*problem);
  }
  if (out.wrapped) out.text += "; COMMIT";
  return out;
}

}  // namespace dlock::mysql
