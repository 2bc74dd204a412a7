// A lock inside a transaction of your own, on a connection of your own: taken here, released by that transaction's
// COMMIT or ROLLBACK, together with whatever else it does. Part of a dlock that was built with PostgreSQL.
//
//   PQclear(PQexec(connection, "BEGIN"));
//   const dlock::FencingToken token = dlock::postgres::lock_in_transaction(connection, "accounts/42");
//   PQclear(PQexec(connection, "UPDATE accounts SET balance = balance - 10 WHERE id = 42"));
//   PQclear(PQexec(connection, "COMMIT"));                  // the change is there, and the lock is free
//
// There is no lease: the lock is held for as long as the transaction is open, and what the transaction wrote is kept
// only if it was held until the end. That makes it safe without anybody looking at the token, where what is protected
// lies in the same database. Works through poolers that lend connections by the transaction, too.
//
// It is the same lock that a client of "postgresql://...?strategy=for-update" (Kind::row) or of "...?strategy=advisory"
// (Kind::advisory) takes, with the same schema and key; the two kinds do not exclude each other, nor do they exclude
// the other strategies. The schema has to be there: see "dlock init".
//
//   the transaction is ...       | lock_in_transaction()           | try_lock_in_transaction()
//   -----------------------------+---------------------------------+--------------------------------
//   open, the lock free          | a token                         | a token
//   open, held by somebody else  | waits                           | nullopt, the transaction goes on
//   open, held by itself         | another token                   | another token
//   failed, or not begun         | throws invalid_argument         | throws invalid_argument
//
// An error leaves the transaction failed, as any error of SQL does: ROLLBACK, or go back to a SAVEPOINT of yours. The
// end of the wait is such an error. What was locked after a savepoint is released by going back to it.
//
// At READ COMMITTED all of this is as it reads. At REPEATABLE READ and SERIALIZABLE a lock that somebody else had since
// the transaction took its snapshot fails with SQLSTATE 40001 (errc::unavailable), and so it must, for such a
// transaction does not see what the other one did: begin it again. Take the lock first thing in the transaction, and
// while others have it, that happens each time.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <dlock/duration.hpp>
#include <dlock/error.hpp>
#include <dlock/token.hpp>

struct pg_conn;  // libpq's: PGconn

namespace dlock::postgres {

// Which lock is taken, and how long to wait for it.
struct TransactionLockOptions {
  enum class Kind {
    row,       // a row of dlock's is locked, FOR UPDATE
    advisory,  // pg_advisory_xact_lock()
  };
  Kind kind = Kind::row;
  // Where dlock's tables are; what the URL's "schema" says.
  std::string schema = "dlock";
  // For Kind::advisory, which lock a name is; what the URL's "key" says: "sha256", "int64:<n>", "pair:<a>,<b>",
  // "medallion", "crc32pair" or "hashtextextended".
  std::string key = "sha256";
  // How long to wait while somebody else holds the lock, to the millisecond. Zero: not at all. Negative:
  // invalid_argument. try_lock_in_transaction() does not look at it.
  Duration wait = forever;
  // Shown to people who look at the tables. Empty: host and process id.
  std::string holder = {};
};

// Takes the lock, waiting for it in the server. Blocks like PQexec(): for as long as options.wait says (by one round
// trip or two more, and longer if the server does not answer: only libpq's keepalives and tcp_user_timeout end that).
// The caller's lock_timeout does not matter; its statement_timeout applies to each wait; both stay as they are. One
// round trip, and another one where options.wait is not forever.
//
// The token is greater than that of every earlier holder of this lock that committed; after a ROLLBACK it was never
// given out, as far as the tables know, and only the server's clock keeps the next one greater.
//
// Throws Error: timed_out, when the wait was over; invalid_argument, for a name or an option that is wrong, for a
// connection with no open transaction or in pipeline mode or with a client_encoding other than UTF8 where the name
// needs it, and for a missing schema; access_denied, naming the grants; unavailable for a broken connection, a
// deadlock, a serialization failure. Safe to call wherever PQexec() on this connection is.
[[nodiscard]] FencingToken lock_in_transaction(pg_conn* connection, std::string_view name,
                                               const TransactionLockOptions& options = {});

// Takes the lock if it is free: nullopt, if somebody else holds it. One round trip, but for the first use of a name.
// Blocks like PQexec() and throws as above.
[[nodiscard]] std::optional<FencingToken> try_lock_in_transaction(pg_conn* connection, std::string_view name,
                                                                  const TransactionLockOptions& options = {});

}  // namespace dlock::postgres
