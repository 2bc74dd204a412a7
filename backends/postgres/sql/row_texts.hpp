// The texts of a row strategy, of which its statements are made.
#pragma once

#include <string_view>

#include "backends/postgres/sql/sql_template.hpp"
#include "backends/postgres/sql/statements.hpp"

namespace dlock::postgres {

// Templates. {notify}, where `name` and `waiting_until` are a row's and `next` is the first of its waiters, or NULL,
// tells those that wait for it, over the channel that the statement is given, or none where that is ''. {first},
// {pop}: the first of the waiters, and that it is removed. {enqueue}: the client of parameter $4 is put behind the
// waiters of row l; {queues}: it is among them already. {each}, where q has names, is q and their rows l. {announce},
// for the end of a list of columns of a row that was granted, and {announce_l}, where that is row l: those who wait for
// an election, or observe it, are told.
struct RowTexts {
  std::string_view table;        // its name where locks are plain ones
  std::string_view held = {};    // whether row l is
  std::string_view change = {};  // of what several may hold, in the place of acquires, renewals and releases
  std::string_view used = {};    // what {used} stands for there
  std::string_view acquire = {};
  std::string_view acquire_many = {};
  std::string_view channel = {};  // of an election, the parameter behind those of a lock
  std::string_view renew_many = {};
  std::string_view release = {};
  std::string_view release_many = {};
  std::string_view look = {};  // without its condition
  std::string_view break_lock = {};
  std::string_view forget = {};
};

[[nodiscard]] RowStatements row_statements(const RowTexts& texts, std::string_view schema, Durability durability,
                                           Queue queue, LockKind kind);

}  // namespace dlock::postgres
