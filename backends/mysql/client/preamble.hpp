// The first statements on each connection: they identify the server, and change the settings of the session. No I/O.
//
// Behind a pooler that lends its server connections for single transactions, settings would affect other clients, so
// such a session keeps its settings.
#pragma once

#include <cstddef>
#include <string>

#include <dlock/error.hpp>
#include <dlock/spi/result.hpp>

#include "backends/common/sql/connection.hpp"
#include "backends/mysql/options.hpp"

namespace dlock::mysql {

// 101119: MariaDB 10.11.19; 80036: MySQL 8.0.36
[[nodiscard]] constexpr bool is_mariadb(int version) noexcept {
  return version >= 100000;
}

// EXECUTE takes values themselves. MySQL's takes variables of the session alone.
[[nodiscard]] constexpr bool has_execute_using(int version) noexcept {
  return version >= 100203;
}

struct Login {
  int version = 0;
  unsigned long thread_id = 0;  // what the server, or a pooler, called the session when it began
  std::string endpoint = {};
  bool encrypted = false;
};

// Asks about the server: the number of statements, and their text.
inline constexpr std::size_t answers_to_question = 3;
[[nodiscard]] std::string question();
// Without ends_silent_sessions. errc::unavailable: locks need a different server. errc::unsupported: the server
// replicates statements.
[[nodiscard]] Result<sql::ServerInfo> read_answer(const sql::Results& results, const Login& login, Pooler pooler);

// Settings: the number of statements, of which the last one may fail on an old server, and their text.
inline constexpr std::size_t settings = 3;
[[nodiscard]] std::string settings_for(const sql::Purpose& purpose, int version);

}  // namespace dlock::mysql
