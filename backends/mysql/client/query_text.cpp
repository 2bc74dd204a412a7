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

// name: that of the prepared statement; empty: the statement is written out.
std::optional<std::string> append_command(std::string& out, const sql::Command& command, const std::string& name) {
  std::string_view sql = sql_of(command);
  auto parameter = command.params.begin();
  if (!name.empty()) out += "EXECUTE " + name;
  for (;;) {
    const auto is_mark = [](char c) { return c == '?' || c == '#'; };
    const auto mark = static_cast<std::size_t>(std::find_if(sql.begin(), sql.end(), is_mark) - sql.begin());
    if (name.empty()) out += sql.substr(0, mark);
    if (mark == sql.size()) break;
    if (parameter == command.params.end()) return "fewer parameters than marks";
    if (!name.empty()) out += parameter == command.params.begin() ? " USING " : ", ";
    if (auto problem = append_parameter(out, sql[mark], *parameter)) return problem;
    ++parameter;
    sql.remove_prefix(mark + 1);
  }
  if (parameter != command.params.end()) return "more parameters than marks";
  return std::nullopt;
}

void append_prepare(std::string& out, const std::string& name, std::string sql) {
  std::replace(sql.begin(), sql.end(), '#', '?');
  out += "PREPARE " + name + " FROM ";
  append_literal(out, sql);
}

// Writes PREPARE, unless the session, or this query, has done so before.
std::string prepare(const sql::Statement& statement, const Prepared& prepared, QueryText& out) {
  std::size_t number = 0;
  for (const Prepared* some : {&prepared, static_cast<const Prepared*>(&out.prepares)}) {
    for (const sql::Statement* each : *some) {
      if (each == &statement) return "d" + std::to_string(number);
      ++number;
    }
  }
  std::string name = "d" + std::to_string(number);
  out.prepares.push_back(&statement);
  if (!out.text.empty()) out.text += "; ";
  append_prepare(out.text, name, statement.sql);
  return name;
}

}  // namespace

Result<QueryText> text_of(const sql::Query& query, const Prepared* prepared, bool retries) {
  const auto& commands = query.commands;
  if (commands.empty()) return invalid("a query without commands");
  QueryText out{.text = {}, .commands = commands.size()};
  out.wrapped = std::any_of(commands.begin(), commands.end() - 1, writes) &&
                std::none_of(commands.begin(), commands.end(), is_about_a_transaction);
  std::vector<std::string> names(commands.size());
  for (std::size_t i = 0; prepared != nullptr && i < commands.size(); ++i) {
    const sql::Statement* const statement = commands[i].statement;
    const bool changes_rows = statement != nullptr && begins_with(statement->sql, {"INSERT", "UPDATE"});
    if (changes_rows) names[i] = prepare(*statement, *prepared, out);
  }
  const auto separate = [&out] {
    if (!out.text.empty()) out.text += "; ";
  };
  // Galera may roll back a transaction between two statements of a text. Without this setting it then executes COMMIT
  // once more, outside the transaction that is gone, and reports success. In the text, it is in force behind proxies.
  out.forbids_retries = retries && std::any_of(commands.begin(), commands.end(), writes);
  if (out.forbids_retries) {
    separate();
    out.text += "SET SESSION wsrep_retry_autocommit = 0";
  }
  if (out.wrapped) {
    separate();
    out.text += "START TRANSACTION";
  }
  for (std::size_t i = 0; i < commands.size(); ++i) {
    separate();
    if (const auto problem = append_command(out.text, commands[i], names[i])) return invalid(*problem);
  }
  if (out.wrapped) out.text += "; COMMIT";
  return out;
}

}  // namespace dlock::mysql
