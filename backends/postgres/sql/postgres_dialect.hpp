// PostgreSQL's answers to the questions of sessions and locks. No I/O.
#pragma once

#include <optional>
#include <string>

#include "backends/postgres/sql/common.hpp"

namespace dlock::postgres {

class PostgresDialect final : public Dialect {
 public:
  explicit PostgresDialect(std::string schema) : schema_(std::move(schema)) {}

  [[nodiscard]] const char* service() const noexcept override { return "PostgreSQL"; }
  [[nodiscard]] const char* heartbeat() const noexcept override { return heartbeat_sql; }
  [[nodiscard]] Meaning meaning_of(const Outcome& outcome) const noexcept override;
  [[nodiscard]] Failure failure_of(const Outcome& outcome) const override;
  [[nodiscard]] bool may_be_ones_fault(const Outcome& outcome) const noexcept override;
  [[nodiscard]] bool is_end_of_patience(const Outcome& outcome) const noexcept override;
  [[nodiscard]] bool is_full_of_notifications(const Outcome& outcome) const noexcept override;
  [[nodiscard]] bool is_about_a_full_server(const Failure& why) const noexcept override;
  [[nodiscard]] std::optional<Failure> unfit_for_locks(const ServerInfo& server) const override;

 private:
  const std::string schema_;
};

}  // namespace dlock::postgres
