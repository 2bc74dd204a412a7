// The options of a postgresql:// or postgres:// URL.
//
//   postgresql://[[user][:password]@][host[:5432][,host...]][/database][?strategy=...&schema=...&sslmode=...]
//
// A host that begins with a slash (written %2F) is the directory of a Unix socket.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/executor.hpp>

#include "backends/common/sql/options.hpp"
#include "backends/postgres/sql/advisory_key.hpp"
#include "backends/postgres/sql/common.hpp"

namespace dlock::postgres {

enum class Durability {
  sync,      // a grant is on disk (and at the synchronous standbys) before it is answered
  async,     // a crash of the server may lose the last grants
  unlogged,  // a crash of the server loses all grants; otherwise as async
};

using sql::to_string;
[[nodiscard]] std::string_view to_string(Durability durability) noexcept;

using common::Host;

struct Options : DatabaseOptions {
  Durability durability = Durability::sync;
  KeyScheme key;  // with Strategy::advisory

  // Handed to libpq as they are, in this order. Values may be secret.
  std::vector<std::pair<std::string, std::string>> libpq;
  std::string target_session_attrs = "read-write";
  std::string application_name;  // at most 63 bytes of printable ASCII; "dlock:" and the holder, unless the URL has one
};

// Executor, options and listener outlive the connection.
using OpenConnection =
    std::function<std::unique_ptr<Connection>(Executor&, const Options&, const Purpose&, Connection::Listener&)>;

// Throws Error(invalid_argument) that names the wrong part.
[[nodiscard]] Options parse_options(const BackendConfig& config);

// As PostgreSQL stores it: at most 63 bytes of printable ASCII, with "?" for other bytes.
[[nodiscard]] std::string as_application_name(std::string_view text);

}  // namespace dlock::postgres
