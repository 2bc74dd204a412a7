// The meaning of a SQLSTATE for a lock. Servers translate the message beside it, but never the code. No I/O.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <dlock/error.hpp>

#include "backends/postgres/sql/common.hpp"
#include "backends/postgres/sql/connect_failure.hpp"

namespace dlock::postgres {

[[nodiscard]] Meaning meaning_of(std::string_view sqlstate) noexcept;

class PostgresDialect final : public Dialect {
 public:
  explicit PostgresDialect(std::string schema) : schema_(std::move(schema)) {}

  [[nodiscard]] const char* service() const noexcept override { return "PostgreSQL"; }
  [[nodiscard]] const char* heartbeat() const noexcept override { return heartbeat_sql; }
  // A statement_timeout, for example.
  [[nodiscard]] bool is_end_of_patience(const Outcome& outcome) const noexcept override {
    return outcome.problem == Problem::refused && outcome.server_code == "57014";
  }
  // A listening session reads none, in an open transaction.
  [[nodiscard]] bool is_full_of_notifications(const Outcome& outcome) const noexcept override {
    return outcome.problem == Problem::refused && outcome.server_code == "54000";
  }
  [[nodiscard]] bool is_about_a_full_server(const Failure& why) const noexcept override {
    return postgres::is_about_a_full_server(why);
  }

 private:
  [[nodiscard]] std::optional<Meaning> find(std::string_view sqlstate) const noexcept override;
  [[nodiscard]] std::string advice(std::string_view sqlstate) const override;

  const std::string schema_;
};

}  // namespace dlock::postgres
