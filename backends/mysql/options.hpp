// The options of a mysql:// or mariadb:// URL.
//
//   mysql://[user][:password@][host[:3306][,host...]][/database][?strategy=...&schema=...&tls=...]
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/executor.hpp>

#include "backends/common/host.hpp"
#include "backends/common/password_file.hpp"
#include "backends/common/sql/connection.hpp"
#include "backends/common/tls.hpp"

namespace dlock::mysql {

enum class Strategy {
  table,       // a row with an owner and an expiry by the server's clock
  optimistic,  // a row with an owner and a version that has to move on
  for_update,  // a row locked by an open transaction
  named,       // GET_LOCK() in a session
};

// Locks end with the session of their holder. Locks of the other strategies live in rows.
[[nodiscard]] constexpr bool lives_in_sessions(Strategy strategy) noexcept {
  return strategy == Strategy::for_update || strategy == Strategy::named;
}

// The server counts whole seconds.
inline constexpr std::chrono::seconds shortest_session_lease{1};

// A pooler or proxy between the client and the server.
enum class Pooler {
  detect,       // the preamble finds out
  session,      // the user guarantees that the pooler, if any, keeps a session for each client
  transaction,  // it lends its sessions for single transactions
};

enum class Tls {
  off,
  unverified,  // encrypted, with any server
  verify,      // the server has a trusted certificate for the host in the URL
};

[[nodiscard]] std::string_view to_string(Strategy strategy) noexcept;

// Of the database of dlock's tables. nullopt: it is a valid name.
[[nodiscard]] std::optional<std::string> problem_with_schema(std::string_view schema);

using common::Host;

struct Options {
  std::vector<Host> hosts;  // at least one, to be tried in this order
  std::optional<std::string> user;
  std::optional<std::string> password;                // never shown
  std::optional<common::PasswordFile> password_file;  // in its place
  std::optional<std::string> database;                // which the session begins with

  Strategy strategy = Strategy::table;
  std::string schema = "dlock";  // the database of dlock's tables
  bool verbatim_keys = false;    // with Strategy::named: the name of a lock is that of GET_LOCK()
  Pooler pooler = Pooler::detect;
  bool single_writer = false;  // the user guarantees that all clients use the same server of a cluster
  std::uint32_t max_connections = 10;
  Tls tls = Tls::off;
  common::TlsOptions tls_files;

  std::string holder;
  std::chrono::nanoseconds lease{};  // the client's default
  std::chrono::nanoseconds response_timeout{};
  std::chrono::nanoseconds connect_timeout{};

  // "h1:3306,h2:3306/database", for messages.
  [[nodiscard]] std::string endpoint() const;
  // "h1:3306/database".
  [[nodiscard]] std::string endpoint_of(const Host& host) const;
};

// Executor, options and listener outlive the connection.
using OpenConnection = std::function<std::unique_ptr<sql::Connection>(Executor&, const Options&, const sql::Purpose&,
                                                                      sql::Connection::Listener&)>;

// Throws Error(invalid_argument) that names the wrong part.
[[nodiscard]] Options parse_options(const BackendConfig& config);

}  // namespace dlock::mysql
