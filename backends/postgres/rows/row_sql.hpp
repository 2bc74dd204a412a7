// The statements of a row strategy, as the tables allow: what an older dlock has made has no queue of those who wait.
#pragma once

#include <utility>

#include "backends/postgres/sql/statements.hpp"

namespace dlock::postgres {

// In tasks only.
class RowSql {
 public:
  RowSql(RowStatements with_queue, RowStatements without)
      : with_queue_(std::move(with_queue)), without_(std::move(without)) {}
  // Of tables that never have one.
  explicit RowSql(RowStatements without) : without_(std::move(without)), has_queue_(false) {}

  [[nodiscard]] const RowStatements& use() const noexcept { return has_queue_ ? with_queue_ : without_; }
  [[nodiscard]] bool has_queue() const noexcept { return has_queue_; }
  // The server has refused a statement, which knew of the queue or did not. True: because there is none; to be asked
  // again with those of use().
  [[nodiscard]] bool does_without(const Outcome& outcome, bool with_queue) noexcept {
    if (!with_queue || outcome.problem != Problem::refused || outcome.sqlstate != "42703") return false;
    has_queue_ = false;
    return true;
  }

 private:
  const RowStatements with_queue_;
  const RowStatements without_;
  bool has_queue_ = true;
};

}  // namespace dlock::postgres
