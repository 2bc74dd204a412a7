// SQL by which a superuser inspects, and disturbs, a lock of one strategy in the schema "dlock".
#pragma once

#include <string>
#include <string_view>

#include "backends/postgres/options.hpp"
#include "backends/postgres/schema/layout.hpp"
#include "backends/postgres/sql/advisory_key.hpp"

namespace dlock::test {

class PostgresLock {
 public:
  PostgresLock(postgres::Strategy strategy, const std::string& name, LockKind kind = LockKind::lock)
      : strategy_(strategy), space_(kind), name_(name), is_it_("name = " + literal(name)) {}

  // A number: everything that could delay others, but not a mere record of a token, nor a waiter for a row.
  [[nodiscard]] std::string residue() const {
    if (lives_in_sessions(strategy_)) return "SELECT count(*) FROM (" + entries() + ") AS e";
    if (strategy_ == postgres::Strategy::optimistic) return count_of("optimistic", "owner IS NOT NULL");
    if (!may_be_shared()) return count_of("lease", "expires_at > clock_timestamp()");
    return "SELECT coalesce(sum((marked_until > clock_timestamp())::integer + (SELECT count(*) FROM "
           "jsonb_each(holders) AS e WHERE (e.value ->> 0)::bigint > extract(epoch FROM clock_timestamp()) * "
           "1000000)), 0) FROM " +
           table("lease") + " WHERE " + is_it_;
  }
  // A number, not 0 once the server has received a waiter's request.
  [[nodiscard]] std::string waiters() const {
    // Of rows: even a try briefly has the lock on the tuple.
    if (lives_in_sessions(strategy_)) return "SELECT count(*) FROM (" + entries() + ") AS e WHERE NOT granted";
    return count_of(strategy_ == postgres::Strategy::table ? "lease" : "optimistic",
                    "waiting_until > clock_timestamp()");
  }
  // A number: the rows about this lock.
  [[nodiscard]] std::string rows() const {
    if (strategy_ == postgres::Strategy::table) return count_of("lease");
    if (strategy_ == postgres::Strategy::optimistic) return count_of("optimistic");
    if (strategy_ == postgres::Strategy::advisory) return count_of("fence");
    return "SELECT (SELECT count(*) FROM dlock.row_lock WHERE " + is_it_ +
           ") + (SELECT count(*) FROM dlock.row_token WHERE " + is_it_ + ")";
  }
  // Takes the lock away from its holder.
  [[nodiscard]] std::string take_away() const {
    if (lives_in_sessions(strategy_)) {
      return "SELECT pg_terminate_backend(pid, 10000) FROM (" + entries() +
             ") AS e WHERE granted AND locktype <> 'tuple'";
    }
    if (strategy_ == postgres::Strategy::optimistic) {
      return "UPDATE " + table("optimistic") + " SET owner = NULL, version = version + 1 WHERE " + is_it_;
    }
    return "UPDATE " + table("lease") + " SET " +
           (may_be_shared() ? "holders = '{}'" : "owner = NULL, expires_at = '-infinity'") + " WHERE " + is_it_;
  }

  [[nodiscard]] static std::string literal(const std::string& text) {
    std::string out = "'";
    for (const char each : text) out.append(each == '\'' ? 2 : 1, each);
    return out + "'";
  }

 private:
  [[nodiscard]] bool may_be_shared() const noexcept {
    return space_ == LockKind::read_write || space_ == LockKind::semaphore;
  }
  [[nodiscard]] std::string count_of(std::string_view of_locks, const std::string& which = "true") const {
    return "SELECT count(*) FROM " + table(of_locks) + " WHERE " + which + " AND " + is_it_;
  }
  [[nodiscard]] std::string table(std::string_view of_locks) const {
    return "dlock." + postgres::table_of(of_locks, space_);
  }
  // The entries of pg_locks for holders and waiters: pid, locktype, granted.
  [[nodiscard]] std::string entries() const {
    if (strategy_ == postgres::Strategy::advisory) {
      const std::string key = std::to_string(postgres::advisory_key({}, "dlock", name_, space_).number);
      return "SELECT l.pid, l.locktype, l.granted FROM pg_locks AS l WHERE l.locktype = 'advisory' AND "
             "l.objsubid = 1 AND ((l.classid::bigint << 32) | l.objid::bigint) = " +
             key;
    }
    // The transaction that has the row; a waiter has, or waits for, the lock on the tuple.
    return "SELECT l.pid, l.locktype, l.granted FROM dlock.row_lock AS r JOIN pg_locks AS l ON "
           "(l.locktype = 'transactionid' AND l.transactionid = r.xmax) OR "
           "(l.locktype = 'tuple' AND l.relation = r.tableoid AND l.page = ((r.ctid::text::point)[0])::integer AND "
           "l.tuple = ((r.ctid::text::point)[1])::integer) WHERE r." +
           is_it_;
  }

  postgres::Strategy strategy_;
  LockKind space_;
  std::string name_;
  std::string is_it_;
};

}  // namespace dlock::test
