// The options of a postgresql:// or postgres:// URL.
//
//   postgresql://[[user][:password]@][host[:5432][,host...]][/database][?strategy=...&schema=...&sslmode=...]
//
// A host that begins with a slash (written %2F) is the directory of a Unix socket.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/executor.hpp>

#include "backends/common/host.hpp"
#include "backends/common/password_file.hpp"

#include "backends/postgres/sql/advisory_key.hpp"
#include "backends/postgres/sql/common.hpp"

namespace dlock::postgres {

enum class Strategy {
  table,       // a row with an owner and an expiry by the server's clock
  optimistic,  // a row with an owner and a version that has to move on
  for_update,  // a row locked by an open transaction
  advisory,    // an advisory lock of a session
};

// Locks end with the session of their holder. Locks of the other strategies live in rows.
[[nodiscard]] constexpr bool lives_in_sessions(Strategy strategy) noexcept {
  return strategy == Strategy::for_update || strategy == Strategy::advisory;
}

enum class Durability {
  sync,      // a grant is on disk (and at the synchronous standbys) before it is answered
  async,     // a crash of the server may lose the last grants
  unlogged,  // a crash of the server loses all grants; otherwise as async
};

// A pooler between the client and the server.
enum class Pooler {
  detect,       // the preamble finds out
  session,      // the user guarantees that the pooler, if any, keeps a session for each client
  transaction,  // it lends its sessions for single transactions
};

[[nodiscard]] std::string_view to_string(Strategy strategy) noexcept;
[[nodiscard]] std::string_view to_string(Durability durability) noexcept;

using common::Host;

struct Options {
  std::vector<Host> hosts;  // at least one, to be tried in this order
  std::optional<std::string> user;
  std::optional<std::string> password;                // never shown
  std::optional<common::PasswordFile> password_file;  // in its place
  std::optional<std::string> database;                // none: libpq's own default, the user's name

  Strategy strategy = Strategy::table;
  std::string schema = "dlock";
  Durability durability = Durability::sync;
  KeyScheme key;  // with Strategy::advisory
  Pooler pooler = Pooler::detect;
  std::uint32_t max_connections = 10;

  // Handed to libpq as they are, in this order. Values may be secret.
  std::vector<std::pair<std::string, std::string>> libpq;
  std::string target_session_attrs = "read-write";
  std::string application_name;  // at most 63 bytes of printable ASCII; "dlock:" and the holder, unless the URL has one

  std::string holder;
  std::chrono::nanoseconds lease{};  // the client's default
  std::chrono::nanoseconds response_timeout{};
  std::chrono::nanoseconds connect_timeout{};

  // "h1:5432,h2:5432/database", for messages.
  [[nodiscard]] std::string endpoint() const;
  // "h1:5432/database".
  [[nodiscard]] std::string endpoint_of(const Host& host) const;
};

// Executor, options and listener outlive the connection.
using OpenConnection =
    std::function<std::unique_ptr<Connection>(Executor&, const Options&, const Purpose&, Connection::Listener&)>;

// Throws Error(invalid_argument) that names the wrong part.
[[nodiscard]] Options parse_options(const BackendConfig& config);

// As PostgreSQL stores it: at most 63 bytes of printable ASCII, with "?" for other bytes.
[[nodiscard]] std::string as_application_name(std::string_view text);

}  // namespace dlock::postgres
