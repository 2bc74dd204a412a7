// strategy=table and strategy=optimistic on MySQL: each request is a few statements about the row of its lock.
#pragma once

#include <functional>
#include <string_view>

#include "backends/common/sql/row_store.hpp"
#include "backends/mysql/sql/row_statements.hpp"

namespace dlock::mysql {

using sql::Command;
using sql::RowAnswer;
using sql::RowRequest;
using sql::Rows;

class RowCommands final : public sql::RowStore {
 public:
  // use_bells: asked for each query.
  RowCommands(std::string_view schema, LockKind kind, bool optimistic, std::function<bool()> use_bells);

  [[nodiscard]] LockKind kind() const noexcept override { return kind_; }
  // Also where one client alone holds a lock: a query locks its rows in the order of names, whatever is to be done with
  // them, so that clients do not deadlock.
  [[nodiscard]] bool sharing() const noexcept override { return true; }
  [[nodiscard]] bool notifies(const RowRequest& request) const noexcept override {
    return has_bells() && request.kind == RowRequest::Kind::release;
  }
  [[nodiscard]] bool depends_on_server() const noexcept override { return bells_; }
  [[nodiscard]] bool outlives_leases() const noexcept override { return bells_; }
  // quiet: without bells.
  [[nodiscard]] std::vector<Command> commands_for(const Requests& requests, bool quiet) const override;
  [[nodiscard]] std::vector<RowAnswer> answers_to(const Requests& requests, std::span<const Rows> results,
                                                  TimePoint sent) const override;

  // Whether waiters can stand in the server's queue, on sessions of their own. Not for read-write locks and semaphores.
  [[nodiscard]] bool has_bells() const noexcept { return bells_; }
  // Gives back the bells that acquires took.
  [[nodiscard]] std::vector<Command> after_refusal(const Requests& requests) const override;
  // On a waiter's own session: see LeaseStatements.
  [[nodiscard]] Command wait(const std::string& name, std::chrono::nanoseconds at_most) const;
  [[nodiscard]] Command leave(const std::string& name) const;

 private:
  // In the order of their names, releases first: a name that is released can be acquired in the same query.
  [[nodiscard]] std::vector<std::size_t> order_of(const Requests& requests) const;
  void add_commands(const RowRequest& request, bool bell, std::vector<Command>& commands) const;
  void add_changes(const RowRequest& request, std::vector<Command>& commands) const;
  [[nodiscard]] std::size_t commands_of(const RowRequest& request) const;  // besides those of bells alone
  [[nodiscard]] RowAnswer answer_of(const RowRequest& request, std::span<const Rows> results) const;
  [[nodiscard]] RowAnswer change_answer_of(const RowRequest& request, std::span<const Rows> results) const;

  const LockKind kind_;
  const bool optimistic_;
  const bool bells_;
  const std::function<bool()> use_bells_;
  const LeaseStatements lease_;      // if bells_
  const SharingStatements sharing_;  // otherwise
};

}  // namespace dlock::mysql
