// postgresql:// and postgres://: locks in a PostgreSQL database. See docs/backends/postgres.md for the layout of the
// tables and the guarantees.
#pragma once

#include <memory>

#include <dlock/spi/backend.hpp>

#include "backends/postgres/options.hpp"

namespace dlock::postgres {

[[nodiscard]] std::unique_ptr<Backend> make_backend(BackendHost& host, Options options, OpenConnection open);

// postgresql://[user[:password]@]host[:5432][,host...][/database][?strategy=table|optimistic|for-update|advisory]
//     [&schema=dlock][&durability=sync|async|unlogged][&key=...][&pooler=session|transaction][&max_connections=10]
[[nodiscard]] std::unique_ptr<Backend> make_postgres_backend(BackendHost& host, const BackendConfig& config);

}  // namespace dlock::postgres
