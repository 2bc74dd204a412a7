// A row strategy is one template, and fragments in which strategies differ.
#pragma once

#include <string_view>

#include "backends/postgres/sql/statements.hpp"

namespace dlock::postgres {

// Fragments are templates, too (sql_template.hpp). l is the row of a lock, q a request: q.owner, q.lease_ms, and of an
// acquire q.seen_owner and q.seen_version.
struct RowFragments {
  std::string_view table;         // of plain locks
  std::string_view held;          // condition: the lock is held
  std::string_view free = {};     // condition: the request may have the lock, although it does not own it yet
  std::string_view renewal = {};  // assignments
  std::string_view freeing;       // assignments
  std::string_view columns = {};  // of a new row, behind those that all tables have
  std::string_view values = {};   // of these columns
  std::string_view seen = {};     // owner, version, ms: an acquire that finds the lock busy answers them
  std::string_view look;          // SELECT of inspect and list, without its condition
  std::string_view in_use = {};   // condition: forget keeps the row; by default while it is held
  // Locks that several clients may hold: one statement in the place of acquire, renew and release; {used} in the other
  // fragments stands for the permits that are taken.
  std::string_view change = {};
  std::string_view used = {};
};

[[nodiscard]] RowStatements row_statements_of(const RowFragments& fragments, std::string_view schema,
                                              Durability durability, LockKind kind);

}  // namespace dlock::postgres
