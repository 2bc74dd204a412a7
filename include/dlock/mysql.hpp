// A lock inside your transaction, on your connection to MariaDB (MySQL is untested). These functions acquire it; the
// COMMIT or ROLLBACK of the transaction releases it. Only in a dlock that was built with the backend mysql.
//
//   mysql_query(connection, "BEGIN");
//   const dlock::FencingToken token = dlock::mysql::lock_in_transaction(connection, "accounts/42");
//   mysql_query(connection, "UPDATE accounts SET balance = balance - 10 WHERE id = 42");
//   mysql_query(connection, "COMMIT");                      // the change is there, and the lock is free
//
// There is no lease: the transaction holds the lock while it is open, and the server keeps its writes only if it held
// the lock until the end. So if the protected data is in the same database, the lock is safe without a token check, as
// long as all of its transactions run on the same server: the nodes of a Galera cluster do not see each other's locks
// on rows before the commit, which then fails with a deadlock at all but one of them.
//
// It is the same lock that a client of "mysql://...?strategy=for-update" acquires, with the same schema. It does not
// exclude the other strategies. The schema must exist: see "dlock init".
//
//   the transaction is ...       | lock_in_transaction()           | try_lock_in_transaction()
//   -----------------------------+---------------------------------+--------------------------------
//   open, the lock free          | a token                         | a token
//   open, held by another owner  | waits                           | nullopt, the transaction goes on
//   open, held by itself         | a greater token                 | a greater token
//   not begun                    | throws invalid_argument         | throws invalid_argument
//
// After timed_out the transaction goes on, unless the server has innodb_rollback_on_timeout. After a deadlock
// (unavailable) the server has rolled it back: begin it again.
//
// All of this holds at every isolation level, but at REPEATABLE READ and SERIALIZABLE a plain SELECT still shows the
// data as of the transaction's first read, which may be older than the lock: acquire the lock first, or read with FOR
// UPDATE.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <dlock/duration.hpp>
#include <dlock/error.hpp>
#include <dlock/token.hpp>

struct st_mysql;  // libmariadb's and libmysqlclient's: MYSQL

namespace dlock::mysql {

// Which lock to acquire, and how long to wait for it.
struct TransactionLockOptions {
  // The database of dlock's tables, as "schema" in the URL.
  std::string schema = "dlock";
  // How long to wait while another owner holds the lock, rounded down to whole seconds, which the server counts. Less
  // than a second: not at all, but on MySQL one second, its minimum. Negative: invalid_argument.
  // try_lock_in_transaction() ignores it.
  Duration wait = forever;
  // Shown to people in the tables. Empty: host and process id.
  std::string holder = {};
};

// Acquires the lock and waits for it in the server. Blocks like mysql_query(): for options.wait plus three round trips,
// and longer if the server does not answer. Restores the session's innodb_lock_wait_timeout.
//
// The token is greater than the token of every earlier holder of this lock that committed. A ROLLBACK removes the token
// from the table, and then only the server's clock makes the next one greater.
//
// Throws Error: timed_out at the end of the wait; invalid_argument for a wrong name or option, for a connection without
// an open transaction or with results that were not read, and for a missing schema; access_denied, naming the grants;
// unavailable for a broken connection or a deadlock. The connection must be one of libmariadb's. Safe to call wherever
// mysql_query() on this connection is.
[[nodiscard]] FencingToken lock_in_transaction(st_mysql* connection, std::string_view name,
                                               const TransactionLockOptions& options = {});

// Acquires the lock if it is free. nullopt: another owner holds it. Blocks like mysql_query(), for three round trips;
// on MySQL (untested), which counts whole seconds, up to a second more while another owner holds it. Throws as above.
[[nodiscard]] std::optional<FencingToken> try_lock_in_transaction(st_mysql* connection, std::string_view name,
                                                                  const TransactionLockOptions& options = {});

}  // namespace dlock::mysql
