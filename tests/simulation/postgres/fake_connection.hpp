// The wire of a fake PostgreSQL server.
#pragma once

#include "backends/postgres/sql/common.hpp"
#include "tests/simulation/sql/fake_connection.hpp"

namespace dlock::postgres {

[[nodiscard]] inline FakeTraits fake_traits() {
  return {.info = {.version = 150020, .endpoint = "fake:5432/locks"},
          .heartbeat = heartbeat_sql,
          .code_word = "SQLSTATE ",
          .full = "FATAL:  53300: sorry, too many clients already"};
}

}  // namespace dlock::postgres
