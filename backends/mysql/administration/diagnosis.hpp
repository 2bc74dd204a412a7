// Examines a server for dangers to locks: its settings, its tables, what is between it and the client.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/info.hpp>
#include <dlock/spi/backend.hpp>

#include "backends/common/sql/commands.hpp"
#include "backends/mysql/options.hpp"

namespace dlock::mysql {

// The answers of a server about itself and about dlock's tables.
struct Examined {
  sql::ServerInfo server = {};
  std::chrono::nanoseconds round_trip{};
  std::int64_t our_clock = 0;  // in seconds since 1970
  std::int64_t its_clock = 0;
  std::string version = {};                                       // "10.11.19-MariaDB-0+deb12u1"
  std::map<std::string, std::string, std::less<>> settings = {};  // by the names of variables in lower case
  std::vector<std::string> tables = {};                           // of dlock's database, that this user may see

  [[nodiscard]] std::string setting(std::string_view name) const;  // empty: the server has none
};

// The meaning of the answers. No I/O.
[[nodiscard]] std::vector<Finding> findings_of(const Examined& examined, const Options& options);

// Answers within the response timeout. Changes nothing. In tasks only. The options outlive it.
void diagnose(sql::Commands& commands, const Options& options, Backend::Handler<std::vector<Finding>> done);

}  // namespace dlock::mysql
