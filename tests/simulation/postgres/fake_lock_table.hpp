// A table of the row strategies, in the memory of a fake server: what row_template.cpp and sharing_statements.cpp say,
// once more in C++.
//
//   FakeLockTable rows(engine, Strategy::table);
//   server.reply = [&](const FakeQuery& query) { return rows.carry_out(query); };
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <dlock/lock_kind.hpp>
#include <dlock/spi/executor.hpp>

#include "backends/postgres/options.hpp"
#include "fake_connection.hpp"

namespace dlock::postgres {

class FakeLockTable {
 public:
  // Of what several may hold.
  struct Share {
    TimePoint expires_at;
    std::int64_t token = 0;
    std::int64_t weight = 0;
    std::string holder = {};
  };
  struct Row {
    std::string owner = {};  // empty: no owner's
    std::string holder = {};
    std::int64_t token = 0;
    std::int64_t version = 0;
    std::int64_t lease_ms = 0;
    TimePoint expires_at = TimePoint::min();
    TimePoint waiting_until = TimePoint::min();
    bool locked = false;  // by a transaction of another client's
    // Of what several may hold.
    std::int64_t permits = 0;
    std::map<std::string, Share> holders = {};
    std::string writer = {};
    TimePoint marked_until = TimePoint::min();
  };
  using Columns = std::vector<std::vector<std::string>>;

  FakeLockTable(Executor& executor, Strategy strategy, LockKind kind = LockKind::lock)
      : executor_(executor), optimistic_(strategy == Strategy::optimistic), kind_(kind) {}

  // A transaction. What is not of this table is answered without rows.
  FakeReply carry_out(const FakeQuery& query);
  Rows carry_out(const Command& command);
  // It waits until none of its rows is locked.
  [[nodiscard]] bool must_wait(const Command& command) const;
  // The elements of each parameter. First come the names, then the owners.
  [[nodiscard]] static Columns columns_of(const Command& command);

  // "acquire", "renew", "release", "mark", ...; or the text.
  [[nodiscard]] static std::string word_for(const Command& command);
  // Of a query, in order: "release renew acquire".
  [[nodiscard]] static std::string words_for(const FakeQuery& query);

  [[nodiscard]] bool held(const std::string& name) const;
  // Those whose leases have not expired.
  [[nodiscard]] std::vector<std::string> owners(const std::string& name) const;

  std::map<std::string, Row> rows;
  // Takes a notification to all who listen.
  std::function<void(const std::string& channel, const std::string& payload)> notify;
  std::string channel;  // where waiters listen
  int notifications = 0;
  // Another client takes the lock, and keeps it.
  void give_to(const std::string& name, const std::string& owner, std::chrono::nanoseconds lease);
  // As if that client had released it.
  void free(const std::string& name, bool notifies = true);

 private:
  // A request of the statement for what several may hold.
  struct Change {
    enum What : std::int64_t { gave_up = -1, release, renew, acquire };
    std::size_t number;
    std::string name;
    std::string owner;
    std::int64_t what;
    std::chrono::milliseconds lease;
    std::string holder;
    std::int64_t weight;
    std::int64_t permits;
    std::chrono::milliseconds mark;

    [[nodiscard]] bool wants_all() const noexcept { return weight == permits; }
  };
  // All that is asked about a name.
  struct Group {
    std::vector<const Change*> all;
    std::vector<const Change*> acquires;

    [[nodiscard]] bool any(auto&& condition) const {
      return std::any_of(all.begin(), all.end(), [&](const Change* each) { return condition(*each); });
    }
    [[nodiscard]] bool releases(const std::string& owner) const {
      return any([&](const Change& each) { return each.what <= 0 && each.owner == owner; });
    }
  };

  [[nodiscard]] TimePoint now() const noexcept { return executor_.now(); }
  [[nodiscard]] std::int64_t next_token(std::int64_t last) const;
  void tell(const Row& row, const std::string& payload);
  [[nodiscard]] bool is_held(const Row& row) const;
  Rows acquire(const Columns& columns);
  Rows renew(const Columns& columns);
  Rows release(const Columns& columns, const std::string& listened);
  Rows mark(const std::vector<std::string>& names, std::chrono::nanoseconds mark_for,
            std::chrono::nanoseconds marked_for);
  void look(const std::string& name, const Row& row, Rows& answer) const;
  Rows break_lock(const std::string& name, const std::string& listened);
  Rows forget(const std::string& name, std::int64_t age, std::size_t at_most);
  [[nodiscard]] static std::vector<Change> changes_in(const Columns& columns);
  [[nodiscard]] std::int64_t used(const Row& row) const;
  [[nodiscard]] bool may_change(const Row& row, const Group& group) const;
  Rows change(const std::vector<Change>& changes, bool notifies);
  void change(const std::string& name, const Group& group, bool notifies, Rows& answer);
  bool change(Row& row, const Group& group) const;
  void admit(Row& row, const Group& group) const;
  [[nodiscard]] static bool stands_by(const Row& row, const Group& group, const Change& each);
  void say_why_not(const Row& row, const Change& each, Rows::Row& cells) const;

  Executor& executor_;
  const bool optimistic_;
  const LockKind kind_;
};

}  // namespace dlock::postgres
