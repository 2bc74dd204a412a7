// The SQL of the four strategies, for one schema. Each text is a single statement; only identifiers are part of it,
// what changes from call to call is $1, $2, ... No I/O.
//
// What all of them keep to:
//   - Times are the server's clock_timestamp(), looked at (again) after a wait for a changing row. now()
//     would be the start of the transaction, and EXCLUDED or VALUES would be evaluated before the wait; both have been
//     seen to hand out a smaller token after a greater one. After a wait for a transaction that changed nothing,
//     what was worked out before stays, which does no harm: no client was granted the lock meanwhile.
//   - A token is the greater of the last one + 1 and the microseconds of the server's clock, so that tokens grow even
//     where the last one was lost.
//   - What finds a lock busy writes nothing.
//   - Everything is qualified, operators, types and collations too, so that no search_path matters, and nothing that
//     another role has created is run: behind a pooler and in the caller's transaction the search_path is not ours. No
//     IN, BETWEEN, IS DISTINCT FROM, ..., which stand for an operator without a schema. Every parameter has a type.
//   - They are right at READ COMMITTED. At any other isolation they fail with 40001 under contention and are to be
//     repeated.
//   - The owner is OwnerId::to_string(), new for every acquire. It alone says whose a lock is: while it stands in the
//     row no other owner has had the lock since, so tokens and versions need not be compared as well.
//
// Statements of many locks take arrays of equal length: text_array(), bigint_array(). Those of one client must not run
// at the same time on two connections: two of them that lock the same rows could deadlock. Against other clients' they
// cannot.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/lock_kind.hpp>

#include "backends/postgres/options.hpp"
#include "backends/postgres/sql/advisory_key.hpp"
#include "backends/postgres/sql/connection.hpp"

namespace dlock::postgres {

// Literals of arrays, to be bound as parameters.
[[nodiscard]] std::string text_array(const std::vector<std::string_view>& elements);
[[nodiscard]] std::string bigint_array(const std::vector<std::int64_t>& elements);

// All of inspect and list answer with rows of these columns:
//   name, held (boolean), holder ('' where unknown), token (0 where unknown), remaining ms or NULL, waiters or NULL
// All of forget take $1 name, or '' for all; $2 how old the last token is to be, in microseconds; $3 at most so many.
// They delete what is left of free locks, passing over rows that another client has locked, and answer the names.
// What the newest version of a row says counts: a token that was handed out since the statement began keeps it.

// strategy=table: an expiry lies in the row. strategy=optimistic: a version does, and moves with every grant, renewal
// and release. A client that sees it unchanged for one lease - the holder's, which the answer tells - may take the lock
// over. It counts on its own clock, from when the answer that showed it had arrived.
//
// None of them waits for a row that another client is changing: for acquire that is busy, for the others it is a reason
// to ask again. For a row that another client is inserting acquire waits a moment, then fails with 55P03.
struct RowStatements {
  // Only of read-write locks and semaphores, and there in the place of acquire, renew and release. Any number of
  // requests at once: $1 names, $2 owners, $3 what (-1: release of who gave up, 0: release, 1: renew, 2: acquire), $4
  // leases in ms, $5 holders, $6 how many permits it takes, $7 of how many, $8 for how many ms it keeps those out,
  // while it waits, who want fewer than all, $9 channel. Answers a row for each, in no order:
  //   its number, from 1; whether it was carried out, as with the others, or NULL: ask again; its token; if it was
  //   refused, because others use another number of permits, that number; if it is busy, ms until that may end
  // Those who want all permits enter alone. It waits for rows that others are changing, but not for long: 55P03.
  Statement change = {};
  // $1 names, $2 owners, $3 holders, $4 leases in ms, $5 and $6 owners and versions that stood still (optimistic), or
  // '' and 0, $7 1 if the owner may have the lock already: of several requests for a name, the first such one is
  // carried out, or else the first, $8 channel, or '': the clients that have marked the row are notified of the grant.
  // Answers rows of owner and
  //   token, ...: granted. The same owner asking again keeps its token and gets a full lease.
  //   NULL, NULL, NULL, ms: busy for so long, unless it is renewed or released (table)
  //   NULL, owner, version, lease in ms: busy (optimistic)
  // An owner that is missing: busy, and changing just now; if the owner has it already, nothing is said about that.
  Statement acquire = {};
  Statement acquire_one = {};  // of one, without arrays; so the next two
  // $1 names, $2 owners, $3 leases in ms. Answers rows of owner and: true, it was renewed; false, another client is
  // changing the row just now, ask again. Those missing have lost their locks. A lease that has expired by the server's
  // clock (table) is not revived, even where no other client has taken the lock.
  Statement renew = {};
  Statement renew_one = {};
  // $1 names, $2 owners, $3 1 if the owner gave up, so that the transaction that has locked the row may be about to
  // commit an acquire of it, $4 channel, or '' to notify no client. Answers rows of owner and: true, it was the owner's
  // until now, and the clients that have marked the row are notified of the name; false, ask again. No row: it was not
  // the owner's.
  Statement release = {};
  Statement release_one = {};
  // $1 names (none twice), $2 mark for so many ms, $3 unless they are marked for so many ms already. Answers rows of
  // name and true: a release in the next $3 ms will notify - so LISTEN first. False or no row: it is not held, or
  // changing just now; try again. Other kinds than plain locks are marked whether they are held or not.
  Statement mark = {};
  Statement inspect;  // $1 name; no row: no such lock
  Statement list;     // $1 at most so many
  // $1 name, $2 channel, or ''. Answers one row, true: it was held until now; false: ask again. No row: it was not
  // held.
  Statement break_lock;
  Statement forget;
};

// In a transaction of the caller's: $1 ms, as text, after which the next statement ends with 57014. A lock_timeout
// would count for each wait of that statement. Answers the statement_timeout as it was, to be put back.
[[nodiscard]] Statement limit_of_wait();

// Which transactions wait for the end of others, as CREATE INDEX CONCURRENTLY does for those with an older snapshot.
// Every role may know. Answers rows of how many transactions are open, and one that waits so, or NULL.
[[nodiscard]] Statement waits_for_snapshots();

// strategy=for-update. Between begin and COMMIT or ROLLBACK, which release; any error releases, too. The token is
// undone with the transaction when that does not commit: then only the clock keeps the next one greater. While it
// lasts, the session's application_name is "dlock#<token>:<holder>", which is how inspect and list know.
struct ForUpdateStatements {
  // $1 name. Makes sure that there is a row to lock; writes nothing where there is. In a transaction of its own,
  // before.
  Statement ensure;
  Statement begin;
  // $1 ms, as text; not 0, which is for ever. Each statement that follows in this transaction ends with 57014 after
  // that time, until the lock is taken.
  Statement set_patience;
  // $1 name, $2 holder. Answers the token; no row: there is no row to lock. 55P03 when it is locked (try_lock), 57014
  // when it is still locked in the end (lock), and then the transaction wants its ROLLBACK.
  Statement try_lock;
  Statement lock;
  // Behind try_lock or lock in the same query, too: the transaction keeps no snapshot from then on.
  Statement heartbeat;
  Statement commit;
  Statement rollback;
  // In a transaction of the caller's. $1 name, $2 holder. Answers one row: the token, or NULL and whether there is a
  // row to lock, which another client has then.
  Statement try_in_transaction;
  // The same and $3 lock_timeout in ms, as text; 0 is for ever; $4 what limit_of_wait() answered, or ''. Answers one
  // row: the token, or NULL where there is no row to lock. 55P03 or 57014 when the time has passed. The timeouts are
  // put back.
  Statement lock_in_transaction;
  // $1 name, $2 lock_timeout. Inserts the row as part of the caller's transaction, and waits for others that are about
  // to do the same. 55P03 and the lock_timeout as above.
  Statement ensure_in_transaction;
  Statement inspect;  // $1 name
  Statement list;     // $1 at most so many
  // $1 name. Ends the holder's session; answers a row, if there is a holder: true, or NULL and the name of the prepared
  // transaction that it is.
  Statement break_lock;
  Statement forget;
};

// strategy=advisory, for keys of one space. Of a lock that is shared, try_lock and join have one parameter more, $4:
// how many tokens to mint, of which they answer the last. $1 is key_parameter(). After an error of try_lock, lock_slice
// or try_many the session may hold the lock all the same; only unlock makes sure.
struct AdvisoryStatements {
  // $1 key, $2 token_row(), $3 holder. Answers token, backend pid; no row: busy. A session that has the lock already
  // gets it a second time, so it must not ask. 55P03: another client has locked the row or the table of the tokens, for
  // longer than the session's lock_timeout.
  Statement try_lock;
  // The same, for a session that shares the lock already: no row where a client waits for it.
  Statement join;
  // As try_lock, and $4 lock_timeout in ms, as text; not 0. 55P03 when it has passed, or another client has locked the
  // row.
  Statement lock_slice;
  // $1 keys, $2 rows, $3 holders; no row twice. Answers row, token, backend pid of those that were granted.
  Statement try_many;
  // $1 a key that no other client uses, which the session locks and unlocks. Answers backend pid, and true if pg_locks
  // shows such a lock of it meanwhile.
  Statement proof;
  // $1 key. Answers true, or false (and a warning) if it was not held.
  Statement unlock;
  // $1 keys, none twice. Answers the same for each of them, in their order.
  Statement unlock_many;
  // As try_lock and lock_slice, to be held until the end of the transaction. lock_in_transaction: and $5 what
  // limit_of_wait() answered, or ''. Afterwards the timeouts are what they were before.
  Statement try_in_transaction;
  Statement lock_in_transaction;
  Statement inspect;  // $1 key, $2 token_row(), which it answers for the name; always one row
  // The same where there are no tables of dlock's, for locks of other programs.
  Statement inspect_without_tables;
  // $1 at most so many. Of all names that were ever locked with this strategy; a name that was locked with several
  // keys is there for each of them.
  Statement list;
  Statement break_lock;  // $1 key. As that of for-update.
  Statement forget;      // $1 token_row(), or ''; for keys of all spaces
};

[[nodiscard]] RowStatements table_statements(std::string_view schema, Durability durability,
                                             LockKind kind = LockKind::lock);
[[nodiscard]] RowStatements optimistic_statements(std::string_view schema, Durability durability,
                                                  LockKind kind = LockKind::lock);
// With strategy=table, for what several may hold: inspect and list answer a row for each of them, and the columns
//   permits in all, how many this one has, its token
[[nodiscard]] RowStatements sharing_statements(std::string_view schema, Durability durability, LockKind kind);
// One of these.
[[nodiscard]] RowStatements row_statements(Strategy strategy, std::string_view schema, Durability durability,
                                           LockKind kind);
[[nodiscard]] ForUpdateStatements for_update_statements(std::string_view schema, Durability durability);
[[nodiscard]] AdvisoryStatements advisory_statements(std::string_view schema, Durability durability,
                                                     AdvisoryKey::KeySpace space, LockKind kind = LockKind::lock,
                                                     Mode mode = Mode::exclusive);

}  // namespace dlock::postgres
