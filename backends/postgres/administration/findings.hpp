// What was found out about a server and about dlock's tables in it, and what that means for locks. No I/O.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <dlock/info.hpp>

#include "backends/postgres/options.hpp"
#include "backends/postgres/sql/connection.hpp"

namespace dlock::postgres {

// One row of pg_settings, in the units of the server.
struct Setting {
  std::string now;         // in our session
  std::string by_default;  // of the role, the database or the server
};

// What was not answered is missing, or empty.
struct Examined {
  ServerInfo server;
  std::chrono::nanoseconds round_trip{};
  // By the server's clock and by ours, in seconds since 1970.
  std::optional<std::int64_t> server_clock;
  std::int64_t our_clock = 0;
  bool over_tcp = false;
  std::string version;  // "15.13 (Debian ...)"
  std::map<std::string, Setting> settings;
  std::optional<std::int64_t> standbys;
  // One row: connections that the server has room for, has; the role may have, has; the database may have, has. Below
  // zero: no limit.
  std::optional<Rows> connections;

  std::optional<Rows> rights;  // SchemaStatements::rights
  std::optional<Rows> tables;  // SchemaStatements::tables
  std::optional<Rows> health;  // SchemaStatements::health
  // Table and index, for each index that is not the primary key's.
  std::optional<Rows> indexes;
  std::optional<std::int64_t> schema_version;
};

// The settings that server_findings() looks at.
[[nodiscard]] std::vector<std::string> interesting_settings();

[[nodiscard]] std::vector<Finding> server_findings(const Examined& examined, const Options& options);
[[nodiscard]] std::vector<Finding> table_findings(const Examined& examined, const Options& options);

}  // namespace dlock::postgres
