// Questions about locks, and their administration, for each strategy. No I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/lock_kind.hpp>

#include "backends/common/sql/connection.hpp"
#include "backends/mysql/sql/session_statements.hpp"

namespace dlock::mysql {

// inspect takes ? name, list # at most so many. Both answer rows of
//   name, held (1 or 0), holder ('' if unknown), token (0 if unknown), remaining ms or NULL, waiters or NULL
// and of read-write locks and semaphores a row for each holder, with three more columns:
//   permits in all, how many this holder has, its token
// Of named and for-update, the seventh column is the holder's session, or NULL.
//
// A user without the right PROCESS sees its own sessions only, and so only those waiters.
struct Questions {
  sql::Statement inspect;
  sql::Statement list;
  // for-update: before and behind inspect and list, in the same query. The first two of these make the server show
  // what holders have not committed; committed, which takes the same parameter, then answers name and token. A lock is
  // held if the tokens differ: read_uncommitted().
  std::optional<sql::Statement> uncommitted = {};
  std::optional<sql::Statement> inspect_committed = {};
  std::optional<sql::Statement> list_committed = {};
  // table, optimistic: ? name. inserted of the last one: it was held until now. For read-write locks and semaphores,
  // lock_row comes first, in the same query. named, for-update: # the holder's session; 1094: it is gone.
  std::optional<sql::Statement> lock_row = {};
  sql::Statement break_lock;
  // ? name, or '' for all, twice; # the age in microseconds that the last token must have; # at most so many. Names of
  // free locks that no other client has locked. Each of them is then forgotten, in the order of the names: ? name, #
  // the age; affected: it was. A token that was granted meanwhile keeps the row. lock_row comes before, in the same
  // query, forget_slots behind it.
  sql::Statement forgettable;
  sql::Statement forget;
  std::optional<sql::Statement> forget_slots = {};  // ? name, ? name
};

[[nodiscard]] Questions row_questions(std::string_view schema, LockKind kind, bool optimistic);
[[nodiscard]] Questions for_update_questions(std::string_view schema);
[[nodiscard]] Questions named_questions(std::string_view schema, LockKind kind, KeyNames keys);

// The answer to inspect or list of for-update: results of uncommitted, inspect, inspect_committed.
[[nodiscard]] sql::Rows read_uncommitted(const sql::Results& results);

}  // namespace dlock::mysql
