// A session of a MySQL server that runs queries on the calling thread, as dlock's connection sends them: the commands
// of a query are one text, with the parameters in it.
#pragma once

#include <mysql.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/common/sql/connection.hpp"
#include "tests/support/mysql_server.hpp"

namespace dlock::test {

// ? becomes X'...', # the digits of a number.
inline std::string with_parameters(const sql::Command& command) {
  const std::string& sql = command.statement != nullptr ? command.statement->sql : command.text;
  std::string out;
  std::size_t next = 0;
  for (const char c : sql) {
    if (c != '?' && c != '#') {
      out += c;
      continue;
    }
    const std::string value = command.params.at(next++).value();
    if (c == '#') {
      out += std::to_string(std::stoll(value));
      continue;
    }
    out += "X'";
    for (const char byte : value) {
      constexpr std::string_view digits = "0123456789abcdef";
      out += {digits[static_cast<unsigned char>(byte) >> 4], digits[static_cast<unsigned char>(byte) & 15]};
    }
    out += "'";
  }
  if (next != command.params.size()) throw std::logic_error("too many parameters for " + sql);
  return out;
}

class BlockingSession {
 public:
  struct Answer {
    sql::Outcome outcome;
    sql::Results results;
  };

  explicit BlockingSession(const MysqlServer& server)
      : BlockingSession("127.0.0.1", server.port(), MysqlServer::user, MysqlServer::password) {}
  BlockingSession(const std::string& host, unsigned int port, const std::string& user, const std::string& password)
      : mysql_(mysql_init(nullptr)) {
    if (mysql_real_connect(mysql_.get(), host.c_str(), user.c_str(), password.c_str(), nullptr, port, nullptr,
                           CLIENT_MULTI_STATEMENTS) == nullptr) {
      throw std::runtime_error(mysql_error(mysql_.get()));
    }
    for (const char* setting : {"SET NAMES utf8mb4", "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
                                "SET time_zone = '+00:00', innodb_lock_wait_timeout = 1"}) {
      const Answer answer = run({{.text = setting}});
      if (answer.outcome.problem != sql::Problem::none) throw std::runtime_error(answer.outcome.failure.detail);
    }
  }

  [[nodiscard]] unsigned long id() const { return mysql_thread_id(mysql_.get()); }

  Answer run(const std::vector<sql::Command>& commands) {
    std::string text;
    int others = 0;
    bool own_transaction = false;
    for (const sql::Command& command : commands) {
      const std::string sql = with_parameters(command);
      text += (text.empty() ? "" : ";") + sql;
      own_transaction = own_transaction || sql.starts_with("BEGIN") || sql.starts_with("COMMIT");
      if (!sql.starts_with("SELECT") && !sql.starts_with("DO")) ++others;
    }
    const bool wrapped = others > 1 && !own_transaction;
    Answer answer = send(wrapped ? "START TRANSACTION;" + text + ";COMMIT" : text);
    if (wrapped && answer.outcome.problem != sql::Problem::none) (void)send("ROLLBACK");
    if (wrapped && answer.outcome.problem == sql::Problem::none) {
      answer.results.erase(answer.results.begin());
      answer.results.pop_back();
    }
    return answer;
  }

 private:
  struct Close {
    void operator()(MYSQL* mysql) const { mysql_close(mysql); }
  };

  Answer send(const std::string& text) {
    Answer answer;
    MYSQL* const mysql = mysql_.get();
    int status = mysql_real_query(mysql, text.data(), text.size());
    while (status == 0) {
      sql::Rows rows;
      if (MYSQL_RES* const result = mysql_store_result(mysql)) {
        const unsigned int columns = mysql_num_fields(result);
        while (MYSQL_ROW row = mysql_fetch_row(result)) {
          const unsigned long* const lengths = mysql_fetch_lengths(result);
          sql::Rows::Row cells;
          for (unsigned int i = 0; i < columns; ++i) {
            cells.emplace_back(row[i] == nullptr ? std::nullopt : std::optional(std::string(row[i], lengths[i])));
          }
          rows.rows.push_back(std::move(cells));
        }
        mysql_free_result(result);
      }
      if (mysql_errno(mysql) != 0) break;
      rows.affected = mysql_affected_rows(mysql);
      rows.inserted = mysql_insert_id(mysql);
      answer.results.push_back(std::move(rows));
      status = mysql_next_result(mysql);
    }
    if (mysql_errno(mysql) != 0) {
      answer.outcome.problem = sql::Problem::refused;
      answer.outcome.server_code = std::to_string(mysql_errno(mysql));
      answer.outcome.failure = {errc::protocol, mysql_error(mysql)};
      answer.outcome.failed_command = answer.results.size();
      answer.results.clear();
    }
    return answer;
  }

  std::unique_ptr<MYSQL, Close> mysql_;
};

}  // namespace dlock::test
