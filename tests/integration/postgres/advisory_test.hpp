// Advisory locks of a real PostgreSQL server, and those who look at them from outside.
#pragma once

#include <string>

#include "backends/postgres/sql/advisory_key.hpp"
#include "postgres/postgres_test.hpp"
#include "tests/support/postgres_connection.hpp"

namespace dlock::test {

inline constexpr const char* advisory = "strategy=advisory";

class AdvisoryTest : public PostgresTest {
 protected:
  [[nodiscard]] Client client(const std::string& more = {}) const {
    return steady(patient(), more.empty() ? advisory : std::string(advisory) + "&" + more);
  }
  [[nodiscard]] static std::string key_of(const std::string& name) {
    return std::to_string(postgres::advisory_key({}, "dlock", name).number);
  }
  [[nodiscard]] std::string count(bool granted) {
    return server.value(std::string("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND ") +
                        (granted ? "granted" : "NOT granted"));
  }
  void await_count(bool granted, int number) {
    await_in_server(std::string("(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND ") +
                    (granted ? "granted" : "NOT granted") + ") = " + std::to_string(number));
  }
  // The tables are there from then on.
  void make_schema() {
    const Client first = client();
    DistributedLock lock = first.make_lock("first");
    EXPECT_TRUE(take(lock).release());
  }
};

}  // namespace dlock::test
