// mysql:// and mariadb://: locks in a MariaDB database. See docs/backends/mysql.md for the layout of the
// tables and the guarantees.
#pragma once

#include <memory>

#include <dlock/spi/backend.hpp>

#include "backends/mysql/options.hpp"

namespace dlock::mysql {

[[nodiscard]] std::unique_ptr<Backend> make_backend(BackendHost& host, Options options, OpenConnection open);

// mysql://[user[:password]@]host[:3306][,host...][/database][?strategy=table|optimistic|for-update|named]
//     [&schema=dlock][&key=verbatim][&pooler=session|transaction][&single_writer=true][&max_connections=10][&tls=...]
[[nodiscard]] std::unique_ptr<Backend> make_mysql_backend(BackendHost& host, const BackendConfig& config);

}  // namespace dlock::mysql
