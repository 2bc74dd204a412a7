#pragma once

#include "backends/mysql/client/libmariadb_connection.hpp"
#include "backends/mysql/options.hpp"
#include "tests/support/live_connection.hpp"

namespace dlock::test {

using LiveConnection = BasicLiveConnection<mysql::parse_options, mysql::libmariadb_connections>;

}  // namespace dlock::test
