// A lock inside your transaction, on your connection. These functions acquire it; the COMMIT or ROLLBACK of the
// transaction releases it. Only in a dlock that was built with PostgreSQL.
//
//   PQclear(PQexec(connection, "BEGIN"));
//   const dlock::FencingToken token = dlock::postgres::lock_in_transaction(connection, "accounts/42");
//   PQclear(PQexec(connection, "UPDATE accounts SET balance = balance - 10 WHERE id = 42"));
//   PQclear(PQexec(connection, "COMMIT"));                  // the change is there, and the lock is free
//
// There is no lease: the transaction holds the lock while it is open, and PostgreSQL keeps its writes only if it held
// the lock until the end. So if the protected data is in the same database, the lock is safe without a token check. It
// also works through poolers that lend a connection per transaction.
//
// It is the same lock that a client of "postgresql://...?strategy=for-update" (Kind::row) or of "...?strategy=advisory"
// (Kind::advisory) acquires, with the same schema and key. The two kinds do not exclude each other or the other
// strategies. The schema must exist: see "dlock init".
//
//   the transaction is ...       | lock_in_transaction()           | try_lock_in_transaction()
//   -----------------------------+---------------------------------+--------------------------------
//   open, the lock free          | a token                         | a token
//   open, held by another owner  | waits                           | nullopt, the transaction goes on
//   open, held by itself         | a greater token                 | a greater token
//   failed, or not begun         | throws invalid_argument         | throws invalid_argument
//
// After an error the transaction has failed, as after any SQL error: ROLLBACK, or return to your SAVEPOINT. The end of
// the wait is such an error. A return to a savepoint releases the locks that the transaction acquired after it.
//
// All of this holds at READ COMMITTED. At REPEATABLE READ and SERIALIZABLE, if another owner held the lock after the
// transaction took its snapshot, the call fails with SQLSTATE 40001 (errc::unavailable). It must fail, because such a
// transaction does not see the other one's writes: begin it again. Acquire the lock first in the transaction. While
// others hold it, this error occurs each time.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <dlock/duration.hpp>
#include <dlock/error.hpp>
#include <dlock/token.hpp>

struct pg_conn;  // libpq's: PGconn

namespace dlock::postgres {

// Which lock to acquire, and how long to wait for it.
struct TransactionLockOptions {
  enum class Kind {
    row,       // locks a row of dlock's table, FOR UPDATE
    advisory,  // pg_advisory_xact_lock()
  };
  Kind kind = Kind::row;
  // The schema of dlock's tables, as "schema" in the URL.
  std::string schema = "dlock";
  // For Kind::advisory, how a name becomes a key, as "key" in the URL: "sha256", "int64:<n>", "pair:<a>,<b>",
  // "medallion", "crc32pair" or "hashtextextended".
  std::string key = "sha256";
  // How long to wait while another owner holds the lock, in whole milliseconds. Zero: not at all. Negative:
  // invalid_argument. try_lock_in_transaction() ignores it.
  Duration wait = forever;
  // Shown to people in the tables. Empty: host and process id.
  std::string holder = {};
};

// Acquires the lock and waits for it in the server. Blocks like PQexec(): for options.wait plus one or two round trips,
// and longer if the server does not answer (only libpq's keepalives and tcp_user_timeout end that). The caller's
// lock_timeout has no effect; its statement_timeout applies to each wait; both stay unchanged. One round trip, and
// another one unless options.wait is forever.
//
// The token is greater than the token of every earlier holder of this lock that committed. A ROLLBACK removes the token
// from the tables, and then only the server's clock makes the next one greater.
//
// Throws Error: timed_out at the end of the wait; invalid_argument for a wrong name or option, for a connection without
// an open transaction or in pipeline mode or with a client_encoding other than UTF8 if the name needs that, and for a
// missing schema; access_denied, naming the grants; unavailable for a broken connection, a deadlock, a serialization
// failure. Safe to call wherever PQexec() on this connection is.
[[nodiscard]] FencingToken lock_in_transaction(pg_conn* connection, std::string_view name,
                                               const TransactionLockOptions& options = {});

// Acquires the lock if it is free. nullopt: another owner holds it. One round trip, except at the first use of a name.
// Blocks like PQexec() and throws as above.
[[nodiscard]] std::optional<FencingToken> try_lock_in_transaction(pg_conn* connection, std::string_view name,
                                                                  const TransactionLockOptions& options = {});

}  // namespace dlock::postgres
