// A table of the row strategies, in the memory of a fake server: what row_template.cpp and sharing_statements.cpp say,
// once more in C++.
#pragma once

#include <cstddef>
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
  using Notify = std::function<void(const std::string& channel, const std::string& payload)>;

  FakeLockTable(Executor& executor, Strategy strategy, LockKind kind, Notify notify)
      : executor_(executor), optimistic_(strategy == Strategy::optimistic), kind_(kind), notify_(std::move(notify)) {}

  Rows carry_out(const Command& command);
  // It waits until none of its rows is locked.
  [[nodiscard]] bool must_wait(const Command& command) const;
  // The elements of each parameter. First come the names, then the owners.
  [[nodiscard]] static Columns columns_of(const Command& command);

  // "acquire", "renew", "release", "mark", ...; or the text.
  [[nodiscard]] static std::string word_for(const Command& command);
  // Of a query, in order: "release renew acquire".
  [[nodiscard]] static std::string words_for(const FakeQuery& query);

  // Those whose leases have not expired.
  [[nodiscard]] std::vector<std::string> owners(const std::string& name) const;

  std::map<std::string, Row> rows;

 private:
  // Requests of the statement for what several may hold.
  struct Change;
  struct Group;

  [[nodiscard]] TimePoint now() const noexcept { return executor_.now(); }
  [[nodiscard]] std::int64_t next_token(std::int64_t last) const;
  [[nodiscard]] bool is_held(const Row& row) const;
  void extend(Row& row, const std::string& lease) const;
  void free(Row& row, const std::string& name, const std::string& channel) const;
  void tell(const Row& row, const std::string& name, const std::string& channel) const;
  [[nodiscard]] Rows acquire(const Columns& columns);
  [[nodiscard]] Rows renew(const Columns& columns);
  [[nodiscard]] Rows release(const Columns& columns);
  [[nodiscard]] Rows mark(const Columns& columns);
  void look(const std::string& name, const Row& row, Rows& answer) const;
  [[nodiscard]] Rows break_lock(const std::string& name, const std::string& channel);
  [[nodiscard]] Rows forget(const std::string& name, std::int64_t age, std::size_t at_most);
  [[nodiscard]] Rows change(const Columns& columns);
  [[nodiscard]] std::int64_t used(const Row& row) const;
  [[nodiscard]] bool may_change(const Row& row, const Group& group) const;
  [[nodiscard]] bool change(Row& row, const Group& group) const;
  void admit(Row& row, const Group& group) const;
  void say_why_not(const Row& row, const Change& each, Rows::Row& cells) const;

  Executor& executor_;
  const bool optimistic_;
  const LockKind kind_;
  const Notify notify_;
};

}  // namespace dlock::postgres
