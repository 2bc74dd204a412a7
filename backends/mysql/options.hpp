// The options of a mysql:// or mariadb:// URL.
//
//   mysql://[user][:password@][host[:3306][,host...]][/database][?strategy=...&schema=...&tls=...]
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/executor.hpp>

#include "backends/common/sql/connection.hpp"
#include "backends/common/sql/options.hpp"
#include "backends/common/tls.hpp"

namespace dlock::mysql {

using common::Host;
using sql::lives_in_sessions;
using sql::Pooler;
using sql::Strategy;
using sql::to_string;

// The server counts whole seconds.
inline constexpr std::chrono::seconds shortest_session_lease{1};

enum class Tls {
  off,
  unverified,  // encrypted, with any server
  verify,      // the server has a trusted certificate for the host in the URL
};

// Of the database of dlock's tables. nullopt: it is a valid name.
[[nodiscard]] std::optional<std::string> problem_with_schema(std::string_view schema);

// The schema is the database of dlock's tables.
struct Options : sql::DatabaseOptions {
  bool verbatim_keys = false;  // with Strategy::named: the name of a lock is that of GET_LOCK()
  bool single_writer = false;  // the user guarantees that all clients use the same server of a cluster
  Tls tls = Tls::off;
  common::TlsOptions tls_files;
};

// Executor, options and listener outlive the connection.
using OpenConnection = std::function<std::unique_ptr<sql::Connection>(Executor&, const Options&, const sql::Purpose&,
                                                                      sql::Connection::Listener&)>;

// Throws Error(invalid_argument) that names the wrong part.
[[nodiscard]] Options parse_options(const BackendConfig& config);

}  // namespace dlock::mysql
