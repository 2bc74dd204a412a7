// A lock inside the program's own transaction: two workers change the same account; each reads the balance, computes,
// and writes. The COMMIT that makes the change visible also releases the lock, so there is no moment between the two,
// and no lease that could expire.
//
//   transaction_lock CONNINFO             (of a database where "dlock init" was run; see PQconnectdb)
#include <libpq-fe.h>

#include <exception>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include <dlock/postgres.hpp>

namespace {

using Connection = std::unique_ptr<PGconn, decltype(&PQfinish)>;

Connection open(const char* conninfo) {
  Connection connection(PQconnectdb(conninfo), &PQfinish);
  if (PQstatus(connection.get()) != CONNECTION_OK) throw std::runtime_error(PQerrorMessage(connection.get()));
  return connection;
}

// The first value of the answer, if there is one.
std::string run(PGconn* connection, const std::string& sql) {
  const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQexec(connection, sql.c_str()), &PQclear);
  const auto status = PQresultStatus(result.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
    throw std::runtime_error(PQerrorMessage(connection));
  }
  return PQntuples(result.get()) > 0 ? PQgetvalue(result.get(), 0, 0) : "";
}

// Always safe: if its connection is closed, a transaction is rolled back, and its locks are free.
void pay_in(const char* conninfo, int times) try {
  const Connection connection = open(conninfo);
  for (int i = 0; i < times; ++i) {
    run(connection.get(), "BEGIN");
    (void)dlock::postgres::lock_in_transaction(connection.get(), "accounts/42");
    const int balance = std::stoi(run(connection.get(), "SELECT balance FROM dlock_example_accounts WHERE id = 42"));
    run(connection.get(),
        "UPDATE dlock_example_accounts SET balance = " + std::to_string(balance + 1) + " WHERE id = 42");
    run(connection.get(), "COMMIT");
  }
} catch (const std::exception& e) {
  std::cerr << "transaction_lock: " << e.what() << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  const char* const conninfo = argc > 1 ? argv[1] : "";
  try {
    const Connection one = open(conninfo);
    run(one.get(),
        "CREATE TABLE IF NOT EXISTS dlock_example_accounts (id integer PRIMARY KEY, balance integer NOT NULL)");
    run(one.get(), "INSERT INTO dlock_example_accounts VALUES (42, 0) ON CONFLICT (id) DO UPDATE SET balance = 0");
    {
      const std::jthread worker([&] { pay_in(conninfo, 100); });
      const std::jthread other([&] { pay_in(conninfo, 100); });
    }
    std::cout << "the balance is " << run(one.get(), "SELECT balance FROM dlock_example_accounts") << '\n';

    const Connection two = open(conninfo);
    run(one.get(), "BEGIN");
    run(two.get(), "BEGIN");
    const dlock::FencingToken token = dlock::postgres::lock_in_transaction(one.get(), "accounts/42");
    const bool free = dlock::postgres::try_lock_in_transaction(two.get(), "accounts/42").has_value();
    std::cout << "while one transaction has the lock, another " << (free ? "gets it, too" : "does not get it") << '\n';
    run(one.get(), "ROLLBACK");
    const auto next = dlock::postgres::try_lock_in_transaction(two.get(), "accounts/42");
    std::cout << "after its end " << (next && *next > token ? "it does" : "it does not") << '\n';
    run(two.get(), "COMMIT");
    run(one.get(), "DROP TABLE dlock_example_accounts");
  } catch (const std::exception& e) {
    std::cerr << "transaction_lock: " << e.what() << '\n';
    return 1;
  }
}
