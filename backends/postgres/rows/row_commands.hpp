// The statements in which requests about rows are sent together, and the answers in their rows.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "backends/common/sql/row_store.hpp"
#include "backends/postgres/sql/statements.hpp"

namespace dlock::postgres {

class RowCommands final : public RowStore {
 public:
  // A mark is good for mark_for, and for at least marked_for when the server answers that the row is marked.
  static constexpr std::chrono::milliseconds mark_for = std::chrono::seconds(15);
  static constexpr std::chrono::milliseconds marked_for = std::chrono::seconds(8);

  // Waiters listen on this channel.
  RowCommands(RowStatements statements, LockKind kind, std::string channel)
      : statements_(std::move(statements)), kind_(kind), channel_(std::move(channel)) {}

  // Several may hold a lock: one statement carries out requests of any kind, because a statement changes a row only
  // once.
  [[nodiscard]] bool sharing() const noexcept override { return !statements_.change.sql.empty(); }
  [[nodiscard]] LockKind kind() const noexcept override { return kind_; }
  [[nodiscard]] const std::string& channel() const noexcept { return channel_; }
  // An answer to this request may have notified clients.
  [[nodiscard]] bool notifies(const RowRequest& request) const noexcept override {
    return request.kind != RowRequest::Kind::mark &&
           (sharing() || request.kind == RowRequest::Kind::release || announces(request));
  }
  // One command.
  [[nodiscard]] std::vector<Command> commands_for(const Requests& requests, bool quiet) const override;
  [[nodiscard]] std::vector<RowAnswer> answers_to(const Requests& requests, std::span<const Rows> results,
                                                  TimePoint sent) const override;

 private:
  // Observers of an election are notified of grants, too.
  [[nodiscard]] bool announces(const RowRequest& request) const noexcept {
    return kind_ == LockKind::election && request.kind == RowRequest::Kind::acquire;
  }

  const RowStatements statements_;
  const LockKind kind_;
  const std::string channel_;
};

}  // namespace dlock::postgres
