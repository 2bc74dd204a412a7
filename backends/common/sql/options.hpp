// The options that the URLs of all databases have.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dlock/spi/backend.hpp>

#include "backends/common/host.hpp"
#include "backends/common/password_file.hpp"

namespace dlock::sql {

enum class Strategy {
  table,       // a row with an owner and an expiry by the server's clock
  optimistic,  // a row with an owner and a version that has to move on
  for_update,  // a row locked by an open transaction
  advisory,    // PostgreSQL: an advisory lock of a session
  named,       // MySQL: GET_LOCK() in a session
};
[[nodiscard]] std::string_view to_string(Strategy strategy) noexcept;

// Locks end with the session of their holder. Locks of the other strategies live in rows.
[[nodiscard]] constexpr bool lives_in_sessions(Strategy strategy) noexcept {
  return strategy != Strategy::table && strategy != Strategy::optimistic;
}

// A pooler or proxy between the client and the server.
enum class Pooler {
  detect,       // the preamble finds out
  session,      // the user guarantees that the pooler, if any, keeps a session for each client
  transaction,  // it lends its sessions for single transactions
};

struct DatabaseOptions {
  std::vector<common::Host> hosts;  // at least one, to be tried in this order
  std::optional<std::string> user;
  std::optional<std::string> password;                // never shown
  std::optional<common::PasswordFile> password_file;  // in its place
  std::optional<std::string> database;                // none: the client library's own default

  Strategy strategy = Strategy::table;
  std::string schema = "dlock";  // that of dlock's tables
  Pooler pooler = Pooler::detect;
  std::uint32_t max_connections = 10;

  std::string holder;
  std::chrono::nanoseconds lease{};  // the client's default
  std::chrono::nanoseconds response_timeout{};
  std::chrono::nanoseconds connect_timeout{};

  // "h1:3306,h2:3306/database", for messages.
  [[nodiscard]] std::string endpoint() const;
  // "h1:3306/database".
  [[nodiscard]] std::string endpoint_of(const common::Host& host) const;
};

// Words of the URL.
template <class T>
using Words = std::initializer_list<std::pair<std::string_view, T>>;

// Takes user, password, strategy, pooler and max_connections from the URL, and the rest from the client's
// configuration; leaves hosts, database and schema. Throws Error(invalid_argument) that names the wrong part.
void take_options(DatabaseOptions& options, Url& url, const BackendConfig& config, Words<Strategy> strategies,
                  Words<Pooler> poolers);

}  // namespace dlock::sql
