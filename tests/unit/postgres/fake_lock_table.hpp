// The table of a row strategy, in the memory of a fake server: what table_statements.cpp and optimistic_statements.cpp
// say, once more in C++.
//
//   FakeLockTable rows(engine, Strategy::table);
//   server.reply = [&](const FakeQuery& query) { return rows.carry_out(query); };
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "backends/postgres/options.hpp"
#include "backends/postgres/sql/statements.hpp"
#include "fake_connection.hpp"
#include "tests/support/manual_engine.hpp"

namespace dlock::postgres {

class FakeLockTable {
 public:
  struct Row {
    std::string owner = {};  // empty: nobody's
    std::string holder = {};
    std::int64_t token = 0;
    std::int64_t version = 0;
    std::int64_t lease_ms = 0;
    TimePoint expires_at = TimePoint::min();
    TimePoint waiting_until = TimePoint::min();
    std::deque<std::string> waiters = {};
    bool locked = false;  // by a transaction of somebody else's
  };

  FakeLockTable(test::ManualEngine& engine, Strategy strategy, LockKind kind = LockKind::lock)
      : engine_(engine),
        optimistic_(strategy == Strategy::optimistic),
        election_(kind == LockKind::election),
        statements_(optimistic_ ? optimistic_statements("dlock", Durability::sync, queue_of(kind), kind)
                                : table_statements("dlock", Durability::sync, queue_of(kind), kind)) {}

  // A transaction. What is not of this table is answered without rows.
  FakeReply carry_out(const FakeQuery& query);

  // "acquire", "acquire_many", "renew_many", "release", "release_many", "mark_many"; or the text.
  [[nodiscard]] std::string word_for(const Command& command) const;
  // Of a query, in order: "release_many renew_many acquire".
  [[nodiscard]] std::string words_for(const FakeQuery& query) const;

  [[nodiscard]] bool held(const std::string& name) const;

  std::map<std::string, Row> rows;
  // Takes a notification to all who listen.
  std::function<void(const std::string& channel, const std::string& payload)> notify;
  std::string channel;  // where waiters listen
  int notifications = 0;
  // Somebody else takes the lock, and keeps it.
  void give_to(const std::string& name, const std::string& owner, std::chrono::nanoseconds lease);
  // As if that somebody had released it.
  void free(const std::string& name, bool notifies = true);

 private:
  [[nodiscard]] static Queue queue_of(LockKind kind) noexcept {
    return kind == LockKind::lock ? Queue::in_the_row : Queue::none;
  }
  void tell(const Row& row, const std::string& payload);
  [[nodiscard]] bool is_held(const Row& row) const;
  Rows acquire(const std::vector<std::vector<std::string>>& columns);
  Rows renew(const std::vector<std::vector<std::string>>& columns);
  Rows release(const std::vector<std::vector<std::string>>& columns, const std::string& listened);
  Rows mark(const std::vector<std::string>& names, std::chrono::nanoseconds mark_for,
            std::chrono::nanoseconds marked_for, const std::string& client);

  test::ManualEngine& engine_;
  const bool optimistic_;
  const bool election_;
  const RowStatements statements_;
};

}  // namespace dlock::postgres
