// Locks inside a transaction of the caller's own, on a real server.
#pragma once

#include <libpq-fe.h>

#include <string>

#include <dlock/postgres.hpp>

#include "tests/support/postgres_connection.hpp"

namespace dlock::test {

using postgres::lock_in_transaction;
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
  [[nodiscard]] std::string pid() const { return std::to_string(PQbackendPID(connection())); }

 private:
  PostgresConnection sql_;
};

}  // namespace dlock::test
