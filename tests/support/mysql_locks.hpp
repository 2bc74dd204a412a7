// SQL by which an administrator inspects, and disturbs, a lock of one strategy in the schema "dlock".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "backends/mysql/options.hpp"
#include "backends/mysql/sql/session_statements.hpp"
#include "backends/mysql/sql/text.hpp"
#include "tests/support/mysql_server.hpp"

namespace dlock::test {

class MysqlLock {
 public:
  MysqlLock(mysql::Strategy strategy, const std::string& name, LockKind kind = LockKind::lock)
      : strategy_(strategy), kind_(kind), name_("X'" + hexadecimal(name) + "'"), is_it_(" WHERE name = " + name_) {}

  // In the form in which the client writes texts into statements.
  [[nodiscard]] static std::string hexadecimal(std::string_view text) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    std::string out;
    for (const char each : text) {
      const auto byte = static_cast<unsigned char>(each);
      out += {digits[byte / 16], digits[byte % 16]};
    }
    return out;
  }

  // A numeric expression: everything that could delay others, but not a mere record of a token.
  [[nodiscard]] std::string residue() const {
    if (strategy_ == mysql::Strategy::named) return "(" + key() + " IS NOT NULL) + " + waiters();
    if (strategy_ == mysql::Strategy::for_update) {
      // The server's own views lag behind; a locked row is skipped.
      return "(SELECT COUNT(*) FROM " + table("row_lock") + is_it_ + ") - (SELECT COUNT(*) FROM (SELECT name FROM " +
             table("row_lock") + is_it_ + " FOR UPDATE SKIP LOCKED) AS free)";
    }
    if (strategy_ == mysql::Strategy::optimistic) {
      return "(SELECT COUNT(*) FROM " + table("optimistic") + is_it_ + " AND owner IS NOT NULL)";
    }
    if (!may_be_shared()) {
      return "(SELECT COUNT(*) FROM " + table("lease") + is_it_ +
             " AND owner IS NOT NULL AND expires_at > UTC_TIMESTAMP(6))";
    }
    return "(SELECT COUNT(*) FROM " + table("lease") + is_it_ + " AND marked_until > UTC_TIMESTAMP(6)) + (SELECT " +
           "COUNT(*) FROM " + slots() + is_it_ + " AND expires_at > UTC_TIMESTAMP(6))";
  }
  // A numeric expression, not 0 once the server has received a waiter's request. The server shows the text of running
  // statements.
  [[nodiscard]] std::string waiters() const {
    const bool for_row = strategy_ == mysql::Strategy::for_update;
    return std::string("(SELECT COUNT(*) FROM information_schema.processlist WHERE ") +
           (for_row ? "command = 'Query' AND id <> CONNECTION_ID()" : "state = 'User lock'") + " AND LOCATE(\"" +
           name_ + (for_row ? " FOR UPDATE\", info) > 0 AND LOCATE('NOWAIT', info) = 0)" : "\", info) > 0)");
  }
  // A numeric expression: the rows about this lock.
  [[nodiscard]] std::string rows() const {
    const char* const of_locks = strategy_ == mysql::Strategy::table        ? "lease"
                                 : strategy_ == mysql::Strategy::optimistic ? "optimistic"
                                 : strategy_ == mysql::Strategy::named      ? "fence"
                                                                            : "row_lock";
    return "(SELECT COUNT(*) FROM " + table(of_locks) + is_it_ + ")";
  }
  // Takes the lock away from its holders.
  void take_away(MysqlServer& server) const {
    if (strategy_ == mysql::Strategy::named) return end(server, server.value("SELECT " + key()));
    if (strategy_ == mysql::Strategy::for_update) {
      server.run("SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED");
      return end(server, server.value("SELECT session FROM " + table("row_lock") + is_it_));
    }
    if (may_be_shared()) {
      server.run("UPDATE " + slots() + " SET owner = NULL, weight = 0, expires_at = '1970-01-01'" + is_it_);
    } else if (strategy_ == mysql::Strategy::optimistic) {
      server.run("UPDATE " + table("optimistic") + " SET owner = NULL, version = version + 1" + is_it_);
    } else {
      server.run("UPDATE " + table("lease") + " SET owner = NULL, expires_at = UTC_TIMESTAMP(6)" + is_it_);
    }
  }

 private:
  [[nodiscard]] bool may_be_shared() const noexcept {
    return kind_ == LockKind::read_write || kind_ == LockKind::semaphore;
  }
  [[nodiscard]] std::string table(std::string_view of_locks) const {
    return "dlock." + mysql::table_of(of_locks, kind_);
  }
  [[nodiscard]] std::string slots() const { return table("lease") + "_slot"; }
  // The session that holds it.
  [[nodiscard]] std::string key() const {
    return "IS_USED_LOCK(" + mysql::key_of("dlock", kind_, mysql::KeyNames::sha256, name_) + ")";
  }
  static void end(MysqlServer& server, const std::string& session) {
    if (session.empty()) return;
    server.run("KILL " + session);
    server.await("NOT EXISTS (SELECT 1 FROM information_schema.processlist WHERE id = " + session + ")");
  }

  mysql::Strategy strategy_;
  LockKind kind_;
  std::string name_;
  std::string is_it_;
};

}  // namespace dlock::test
