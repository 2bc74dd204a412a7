// Locks inside a transaction of the caller's own, on a real server.
#pragma once

#include <gtest/gtest.h>

#include <libpq-fe.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <dlock/dlock.hpp>
#include <dlock/postgres.hpp>

#include "integration_test.hpp"
#include "tests/support/postgres_connection.hpp"
#include "tests/support/postgres_locks.hpp"
#include "tests/support/postgres_server.hpp"
#include "torture/rig/hang_guard.hpp"

namespace dlock::test {

using namespace std::chrono_literals;
using postgres::lock_in_transaction;
using postgres::Strategy;
using postgres::TransactionLockOptions;
using postgres::try_lock_in_transaction;
using Kind = TransactionLockOptions::Kind;

// A program's own connection.
class Program {
 public:
  explicit Program(const std::string& url) : sql_(url) {}

  [[nodiscard]] pg_conn* connection() const { return sql_.handle(); }
  void run(const std::string& sql) { sql_.run(sql); }
  [[nodiscard]] std::string value(const std::string& sql) { return sql_.value(sql); }
  void begin(const std::string& how = {}) { sql_.run("BEGIN " + how); }
  void commit() { sql_.run("COMMIT"); }
  void rollback() { sql_.run("ROLLBACK"); }
  [[nodiscard]] PGTransactionStatusType status() const { return PQtransactionStatus(connection()); }

 private:
  PostgresConnection sql_;
};

class PostgresTransactionLockTest : public testing::TestWithParam<Kind> {
 protected:
  static void SetUpTestSuite() {
    shared = std::make_unique<PostgresServer>();
    (void)connect_patiently(shared->url()).initialize();
  }
  static void TearDownTestSuite() { shared.reset(); }

  // A name of this test's own.
  PostgresTransactionLockTest() : name("test/" + std::to_string(++tests)) {}

  [[nodiscard]] static TransactionLockOptions options(Duration wait = rig::hang_guard) {
    return {.kind = GetParam(), .wait = wait};
  }
  [[nodiscard]] Client client() const {
    return connect_patiently(server.url(GetParam() == Kind::row ? "strategy=for-update" : "strategy=advisory"));
  }
  [[nodiscard]] bool is_free() const { return is_free(name); }
  [[nodiscard]] bool is_free(const std::string& other_name) const {
    const Client other = client();
    return other.make_lock(other_name).try_acquire().has_value();
  }
  void await_waiter() const {
    const auto strategy = GetParam() == Kind::row ? Strategy::for_update : Strategy::advisory;
    server.await("(" + PostgresLock(strategy, name).waiters() + ") > 0");
  }
  [[nodiscard]] static std::optional<Error> error_of(const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& e) {
      return e;
    }
    return std::nullopt;
  }
  static void expect_error(errc code, const std::string& words, const std::function<void()>& call) {
    const auto error = error_of(call);
    ASSERT_TRUE(error) << words;
    EXPECT_EQ(error->code(), code) << error->what();
    EXPECT_NE(error->detail().find(words), std::string::npos) << error->what();
  }

  static inline std::unique_ptr<PostgresServer> shared;
  static inline int tests = 0;
  PostgresServer& server = *shared;
  const std::string name;
};

inline std::string name_of_kind(const testing::TestParamInfo<Kind>& kind) {
  return kind.param == Kind::row ? "row" : "advisory";
}

}  // namespace dlock::test
