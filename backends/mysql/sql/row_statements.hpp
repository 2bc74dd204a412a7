// The SQL of strategy=table and strategy=optimistic, for one database and kind of locks. No I/O.
//
// Rules for all of them:
//   - The owner is OwnerId::to_string(), new for every acquire. While a row has an owner, no other owner has had the
//     lock since, so statements compare neither tokens nor versions. '' and '+' are never owners.
//   - A token is the greater of the last token + 1 and the microseconds of the server's clock, so tokens grow even if
//     the last one was lost. LAST_INSERT_ID(token) lets the server send it with the number of changed rows. A statement
//     that changes a row of ours evaluates LAST_INSERT_ID(), and one that does not match does not: Rows::inserted tells
//     whether the row was ours, even if the new values are the old ones.
//   - SET assigns from left to right, and sees what it has assigned. So an acquire first decides, in the column owner.
//   - A row is never deleted, except by forget: with DELETE on release, clients deadlock, and tokens are inverted.
//   - A statement that finds a lock busy locks the row for its own duration, and writes nothing.
//   - They are correct at READ COMMITTED. Statements of one query are in the order of the names, so that clients do not
//     deadlock. 1205 and 1213 mean that the query was not carried out.
//
// A bell is a lock of GET_LOCK() that the session has which holds the row. It gives waiters an order and wakes them;
// the row alone decides who has the lock. The first waiter of the server's queue gets the bell when the holder releases
// it. For half a second from then on, a row that is free may be taken only if the bell is free, or this session's, or
// that of the session #place, or still that of the session in the row, which had the lock before. After that, the bell
// does not matter: sessions that have a bell and do nothing do no harm. A session that dies loses its bells.
#pragma once

#include <string_view>
#include <vector>

#include <dlock/lock_kind.hpp>

#include "backends/common/sql/connection.hpp"

namespace dlock::mysql {

// Plain locks and elections. The statements with a bell are for sessions that are this client's alone.
struct LeaseStatements {
  struct Variant {
    // ? owner[, # place]; optimistic: ? and # owner and version that stood still; [# place, # place,] # lease in us,
    // optimistic: in ms; ? holder, ? owner, ? name. In [], with a bell only.
    // affected is greater than 0: granted, inserted is the token. An owner that asks again keeps its token. Otherwise
    // inserted has the ms until the lock may be free; optimistic: how long the lease is. 0: there is no row.
    sql::Statement acquire = {};
    // table: # lease in us, ? name, ? owner; optimistic: # lease in ms, ... inserted: it was renewed.
    sql::Statement renew = {};
    // ? name, ? owner. inserted: it was the owner's until now.
    sql::Statement release = {};
  };
  Variant plain = {};
  Variant with_bell = {};
  sql::Statement make_row = {};  // ? name. Unless it is there; in front of acquire
  // optimistic, behind acquire: ? name. One row: owner and version.
  sql::Statement look = {};
  // ? name. With a bell, behind renew, behind a release by an owner that gave up, and after an error of a query with
  // acquires, which may have left bells: this session takes the bell if it has the row, or else gives it back.
  sql::Statement tidy = {};
  // On a waiter's own session: ? name, # at most so many microseconds (MySQL: rounded to seconds). One row: 1, the
  // session has the bell; 0, it has not; NULL, the server ended the wait, and the session has not.
  sql::Statement wait = {};
  // ? name. One row: 1 if the session had the bell. A session must wait for a bell only while it has not got it.
  sql::Statement leave = {};
};

// Of read-write locks and semaphores. A row has the token and the writer's mark, and each holder a slot, a row of
// another table. All changes lock the former first, with open or lock; each query is a transaction.
struct SharingStatements {
  sql::Statement open = {};  // ? name. Before the next ones; makes a missing row
  // # permits, ? owner, ? owner, # weight, # permits, # permits, # permits, # weight, ? name, ? owner. inserted: the
  // token of a grant, which enter must follow
  sql::Statement grant = {};
  sql::Statement enter = {};  // ? owner, ? holder, # weight, # lease in us, ? name
  // # us, ? owner, ? name, ? owner, # us, ? owner. For a writer that was not granted: keeps readers out.
  sql::Statement mark = {};
  // # weight, # permits, ? name. One row: permits, how many are taken, ms until that may end.
  sql::Statement look = {};

  sql::Statement lock = {};  // ? name. Before the next ones
  // # lease in us, ? name, ? owner. inserted: it was renewed, this is its token. Behind open, too, for an owner that
  // may have the lock already.
  sql::Statement renew = {};
  sql::Statement release = {};  // ? name, ? owner. inserted: it was the owner's until now.
  sql::Statement unmark = {};   // ? name, ? owner
};

[[nodiscard]] LeaseStatements lease_statements(std::string_view schema, LockKind kind);
[[nodiscard]] LeaseStatements optimistic_statements(std::string_view schema, LockKind kind);
[[nodiscard]] SharingStatements sharing_statements(std::string_view schema, LockKind kind);

}  // namespace dlock::mysql
