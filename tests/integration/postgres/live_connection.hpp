#pragma once

#include "backends/postgres/libpq/libpq_connection.hpp"
#include "backends/postgres/options.hpp"
#include "tests/support/live_connection.hpp"

namespace dlock::test {

using LiveConnection = BasicLiveConnection<postgres::parse_options, postgres::libpq_connections>;

}  // namespace dlock::test
