// The SQL of the four strategies, for one schema. Each text is a single statement. Only identifiers are part of it;
// everything that changes from call to call is $1, $2, ... No I/O.
//
// Rules for all of them:
//   - Times are the server's clock_timestamp(), evaluated after the wait for a row that another transaction changes.
//     now() is the start of the transaction, and EXCLUDED or VALUES are evaluated before the wait: with both, a smaller
//     token followed a greater one. After a wait for a transaction that changed nothing, the older time is harmless: no
//     client was granted the lock meanwhile.
//   - A token is the greater of the last token + 1 and the microseconds of the server's clock, so tokens grow even if
//     the last one was lost.
//   - A statement that finds a lock busy writes nothing.
//   - Everything is qualified, including operators, types and collations: behind a pooler and in the caller's
//     transaction the search_path is not ours, and nothing that another role has created may run. No IN, BETWEEN, IS
//     DISTINCT FROM, ..., which stand for an operator without a schema. Every parameter has a type.
//   - They are correct at READ COMMITTED. At other isolation levels they fail with 40001 under contention, and the
//     client repeats them.
//   - The owner is OwnerId::to_string(), new for every acquire. While a row has an owner, no other owner has had the
//     lock since, so statements compare neither tokens nor versions.
//
// Statements of many locks take arrays of equal length: text_array(), bigint_array(). One client must not run two of
// them at the same time on two connections: if they lock the same rows, they can deadlock. With other clients they
// cannot.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/lock_kind.hpp>

#include "backends/postgres/options.hpp"
#include "backends/postgres/sql/advisory_key.hpp"
#include "backends/postgres/sql/common.hpp"

namespace dlock::postgres {

// Literals of arrays, to be bound as parameters.
[[nodiscard]] std::string text_array(const std::vector<std::string_view>& elements);
[[nodiscard]] std::string bigint_array(const std::vector<std::int64_t>& elements);

// inspect takes $1 name, list $1 at most so many. Both answer rows of
//   name, held (boolean), holder ('' if unknown), token (0 if unknown), remaining ms or NULL, waiters or NULL
// forget takes $1 name, or '' for all; $2 the age in microseconds that the last token must have; $3 at most so many. It
// deletes the rows of free locks, skips rows that another client has locked, and answers the names. The newest version
// of a row decides: a token that was granted since the statement began keeps it.

// strategy=table: the row has an expiry. strategy=optimistic: the row has a version, which every grant, renewal and
// release changes. A client that sees the version unchanged for one lease of the holder, which the answer contains, may
// take the lock over. It counts on its own clock, from the moment when that answer had arrived.
//
// None of them waits for a row that another client is changing: an acquire finds the lock busy, for the others the
// client asks again. For a row that another client is inserting, acquire waits for a moment, then fails with 55P03.
struct RowStatements {
  // Only of read-write locks and semaphores, instead of acquire, renew and release. Any number of requests at once: $1
  // names, $2 owners, $3 actions (-1: release of an owner that gave up, 0: release, 1: renew, 2: acquire), $4 leases in
  // ms, $5 holders, $6 how many permits it takes, $7 of how many, $8 for how many ms it keeps out, while it waits,
  // requests for fewer than all permits, $9 channel. Answers a row for each, in no order:
  //   its number, from 1; whether it was done, as with the others, or NULL: ask again; its token; if others use another
  //   number of permits, that number; if it is busy, ms until that may end
  // A request for all permits is granted alone. Waits briefly for rows that others are changing: 55P03.
  Statement change = {};
  // $1 names, $2 owners, $3 holders, $4 leases in ms, $5 and $6 owners and versions that stood still (optimistic), or
  // '' and 0, $7 1 if the owner may have the lock already: of several requests for a name, the statement takes the
  // first such one, or else the first, $8 channel, or '': notifies the clients that have marked the row of the grant.
  // Answers rows of owner and
  //   token, ...: granted. An owner that asks again keeps its token and gets a full lease.
  //   NULL, NULL, NULL, ms: busy for so long, unless it is renewed or released (table)
  //   NULL, owner, version, lease in ms: busy (optimistic)
  // No row for an owner: busy, and changing just now; the owner may have the lock already.
  Statement acquire = {};
  Statement acquire_one = {};  // of one request, without arrays; so the next two
  // $1 names, $2 owners, $3 leases in ms. Answers rows of owner and: true, it was renewed; false, another client is
  // changing the row just now, ask again. No row for an owner: it has lost its lock. A lease that has expired by the
  // server's clock (table) is not revived, even if no other client has taken the lock.
  Statement renew = {};
  Statement renew_one = {};
  // $1 names, $2 owners, $3 1 if the owner gave up, so that the transaction that has locked the row may be about to
  // commit its acquire, $4 channel, or '' to notify no client. Answers rows of owner and: true, it was the owner's
  // until now, and the clients that have marked the row are notified of the name; false, ask again. No row: it was not
  // the owner's.
  Statement release = {};
  Statement release_one = {};
  // $1 names (none twice), $2 mark for so many ms, $3 unless they are marked for so many ms already. Answers rows of
  // name and true: a release in the next $3 ms will notify, so LISTEN first. False or no row: it is not held, or
  // changing just now; try again. Other kinds than plain locks are marked whether they are held or not.
  Statement mark = {};
  Statement inspect;
  Statement list;
  // $1 name, $2 channel, or ''. Answers true: it was held until now; false: ask again. No row: it was not held.
  Statement break_lock;
  Statement forget;
};

// Before list and forget of for-update and advisory, in their transaction, in which the server then plans them. They
// join the names with the locks of the server, whose number it cannot estimate, and it keeps a plan that was made for
// few names. A nested loop would compare each name with each lock.
inline constexpr const char* without_nested_loops_sql = "SELECT pg_catalog.set_config('enable_nestloop', 'off', true)";

// In the caller's transaction: $1 ms, as text, after which the next statement ends with 57014. A lock_timeout would
// count for each wait of that statement. Answers the statement_timeout before that, so that it can be restored.
[[nodiscard]] Statement limit_of_wait();

// Finds transactions that wait for the end of others, as CREATE INDEX CONCURRENTLY does for those with an older
// snapshot. Needs no right. Answers rows of how many transactions are open, and one that waits so, or NULL.
[[nodiscard]] Statement waits_for_snapshots();

// strategy=for-update. Between begin and COMMIT or ROLLBACK, which release; any error releases, too. If the transaction
// does not commit, its token is undone, and only the clock makes the next one greater. In the transaction, the
// session's application_name is "dlock#<token>:<holder>", which inspect and list read.
struct ForUpdateStatements {
  // $1 name. Inserts the row to lock, unless there is one. In a transaction of its own, before the others.
  Statement ensure;
  Statement begin;
  // $1 ms, as text; not 0, which means no limit. Until the lock is taken, each statement of this transaction ends with
  // 57014 after that time.
  Statement set_patience;
  // $1 name, $2 holder. Answers the token; no row: there is no row to lock. 55P03 if it is locked (try_lock), 57014 if
  // it is still locked in the end (lock): then a ROLLBACK must follow.
  Statement try_lock;
  Statement lock;
  // Behind try_lock or lock in the same query, too: the transaction keeps no snapshot from then on.
  Statement heartbeat;
  Statement commit;
  Statement rollback;
  // In the caller's transaction. $1 name, $2 holder. Answers one row: the token, or NULL and whether there is a row to
  // lock, which another client has then.
  Statement try_in_transaction;
  // In the caller's transaction. $1 name, $2 holder, $3 lock_timeout in ms, as text, 0 means no limit; $4 the answer of
  // limit_of_wait(), or ''. Answers one row: the token, or NULL if there is no row to lock. 55P03 or 57014 once the
  // time has passed. Restores the timeouts.
  Statement lock_in_transaction;
  // $1 name, $2 lock_timeout. Inserts the row in the caller's transaction, and waits for clients that insert the same
  // row. 55P03 and the lock_timeout as above.
  Statement ensure_in_transaction;
  Statement inspect;
  Statement list;
  // $1 name, $2 only these processes, unless it is empty. Ends the holder's session. If there is a holder, answers
  // true, or NULL and the name of its prepared transaction; and its process.
  Statement break_lock;
  Statement forget;
};

// strategy=advisory, for keys of one space. $1 is key_parameter(). For a shared lock, try_lock and join have one more
// parameter, $4: how many tokens to mint; they answer the last one. After an error of try_lock, lock_slice or try_many
// the session may hold the lock all the same, until unlock.
struct AdvisoryStatements {
  // $1 key, $2 token_row(), $3 holder. Answers token, backend pid; no row: busy. A session that has the lock already
  // would get it a second time, so it must not ask. 55P03: another client has locked the row or the table of the tokens
  // for longer than the session's lock_timeout.
  Statement try_lock;
  // As try_lock, for a session that shares the lock already: no row if a client waits for it.
  Statement join;
  // As try_lock, and $4 lock_timeout in ms, as text; not 0. 55P03 once it has passed, or if another client has locked
  // the row.
  Statement lock_slice;
  // $1 keys, $2 rows, $3 holders; no row twice. Answers row, token, backend pid of each lock that was granted.
  Statement try_many;
  // $1 a key that no other client uses, which the session locks and unlocks. Answers backend pid, and true if pg_locks
  // showed that lock meanwhile.
  Statement proof;
  // $1 key. Answers true, or false (and a warning) if it was not held.
  Statement unlock;
  // $1 keys, none twice. Answers the same for each of them, in their order.
  Statement unlock_many;
  // As try_lock and lock_slice, until the end of the caller's transaction. lock_in_transaction takes $5 the answer of
  // limit_of_wait(), or '', and restores the timeouts.
  Statement try_in_transaction;
  Statement lock_in_transaction;
  Statement inspect;                 // $1 key, $2 token_row(); at least one row
  Statement inspect_without_tables;  // as inspect, for locks of other programs
  Statement list;                    // each name that was ever locked with this strategy, once for each of its keys
  Statement break_lock;              // $1 key; otherwise as that of for-update
  Statement forget;                  // $1 token_row(), or ''; for keys of all spaces
};

[[nodiscard]] RowStatements table_statements(std::string_view schema, Durability durability,
                                             LockKind kind = LockKind::lock);
[[nodiscard]] RowStatements optimistic_statements(std::string_view schema, Durability durability,
                                                  LockKind kind = LockKind::lock);
// With strategy=table, for locks of several holders: inspect and list answer a row for each holder, and the columns
//   permits in all, how many this holder has, its token
[[nodiscard]] RowStatements sharing_statements(std::string_view schema, Durability durability, LockKind kind);
// One of these.
[[nodiscard]] RowStatements row_statements(Strategy strategy, std::string_view schema, Durability durability,
                                           LockKind kind);
[[nodiscard]] ForUpdateStatements for_update_statements(std::string_view schema, Durability durability);
[[nodiscard]] AdvisoryStatements advisory_statements(std::string_view schema, Durability durability,
                                                     AdvisoryKey::KeySpace space, LockKind kind = LockKind::lock,
                                                     Mode mode = Mode::exclusive);

}  // namespace dlock::postgres
