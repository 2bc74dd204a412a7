// Locks as a user of libpq would write them, in tables of their own.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "bench/targets/floor.hpp"
#include "bench/targets/postgres/connection.hpp"
#include "torture/rig/url_text.hpp"

namespace dlock::bench {

// Quoted, with the schema.
struct ByHandTables {
  std::string locks;     // a row is a lock that is held
  std::string counters;  // the last token of each name
};

// Whose names begin with that.
[[nodiscard]] ByHandTables by_hand_tables(const std::string& schema, const std::string& start);
// Both throw std::runtime_error.
void make(const ByHandTables& tables, const PostgresConnection& connection);
void drop(const ByHandTables& tables, const PostgresConnection& connection);

// "table" and "optimistic": a row is inserted and deleted. "advisory": an advisory lock, and in the same statement a
// token from a counter. "for-update": a transaction that locks a row and counts it up. The tables have to be there.
// Throws std::runtime_error if it cannot connect, std::invalid_argument for an unknown strategy.
[[nodiscard]] std::unique_ptr<Floor> make_postgres_by_hand(const rig::UrlText& url, std::string_view strategy,
                                                           const ByHandTables& tables, const std::string& name);

}  // namespace dlock::bench
