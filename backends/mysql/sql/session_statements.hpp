// strategy=for-update and strategy=named: locks that live in a session of the server. No I/O.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <dlock/lock_kind.hpp>

#include "backends/common/sql/session_dialect.hpp"

namespace dlock::mysql {

// strategy=for-update: an open transaction has locked the row of the name, and has written its token there. Waiters for
// a row keep their order even if the holder changes it. Until the holder commits, others see the old token, except at
// READ UNCOMMITTED; so a lock is held if the two differ, whatever has become of its holder. If the transaction does not
// commit, its token is undone, and only the clock makes the next one greater. For servers that have NOWAIT: MariaDB
// 10.3, MySQL 8.0.1.
struct ForUpdateStatements {
  sql::Statement ensure;        // ? name. Inserts the row to lock, in a transaction of its own
  sql::Statement set_patience;  // # whole seconds, at least 1: for each row that later statements of the session lock
  sql::Statement begin;
  sql::Statement try_lock;  // ? name. No row: there is none to lock. 1205, MySQL 3572: it is locked.
  sql::Statement lock;      // the same, but waits: 1205
  sql::Statement fence;     // ? holder, ? name. Behind one of these; inserted: the token
  sql::Statement commit;
  sql::Statement rollback;
  // In the caller's transaction, at any isolation level. ? name, ? holder. inserted: the token. Makes a missing row,
  // which others cannot lock or make before the transaction ends. Waits: 1205, which leaves the transaction usable
  // unless innodb_rollback_on_timeout is on; 1213 rolls it back.
  sql::Statement lock_in_transaction;
  // Before and after that one: # whole seconds, as set_patience.
  sql::Statement limit_wait;
  sql::Statement restore_wait;
};
[[nodiscard]] ForUpdateStatements for_update_statements(std::string_view schema);

// The names of GET_LOCK() that strategy=named takes.
enum class KeyNames {
  sha256,    // user_lock("named", schema, "fence", name), which depends on the kind, too
  verbatim,  // the name itself, as other programs use it: up to 192 bytes; MySQL: 64 characters, ignoring case
};

// strategy=named: a session has locked the key of the name. The token is written behind the grant, in a transaction of
// its own, by the session that has the lock: so tokens grow even if sessions die.
struct NamedStatements {
  // ? name, # at most so many microseconds, 0: does not wait. One row: 1, granted; 0, busy; NULL, the server ended the
  // wait, and the session has not got it; and the number of the session. A session that has the lock already would get
  // it a second time, so it must not ask.
  sql::Statement get;
  // ? name, ? holder, ? name. Behind it; if the session has the lock. inserted: the token, if affected is not 0.
  sql::Statement fence;
  sql::Statement release;  // ? name. One row: 1 if the session had it
};
[[nodiscard]] NamedStatements named_statements(std::string_view schema, LockKind kind, KeyNames keys);
// An expression: the key of a name, which is an expression, too.
[[nodiscard]] std::string key_of(std::string_view schema, LockKind kind, KeyNames keys, std::string_view name);

[[nodiscard]] std::unique_ptr<sql::SessionDialect> for_update_dialect(std::string_view schema);
[[nodiscard]] std::unique_ptr<sql::SessionDialect> named_dialect(std::string_view schema, KeyNames keys);

}  // namespace dlock::mysql
