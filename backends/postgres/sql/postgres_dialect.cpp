#include "backends/postgres/sql/postgres_dialect.hpp"

#include "backends/postgres/sessions/session_fitness.hpp"
#include "backends/postgres/sql/connect_failure.hpp"
#include "backends/postgres/sql/sqlstate.hpp"

namespace dlock::postgres {

Meaning PostgresDialect::meaning_of(const Outcome& outcome) const noexcept {
  return postgres::meaning_of(outcome);
}

Failure PostgresDialect::failure_of(const Outcome& outcome) const {
  return postgres::failure_of(outcome, schema_);
}

bool PostgresDialect::may_be_ones_fault(const Outcome& outcome) const noexcept {
  return postgres::may_be_ones_fault(outcome);
}

bool PostgresDialect::is_end_of_patience(const Outcome& outcome) const noexcept {
  return postgres::is_end_of_patience(outcome);
}

bool PostgresDialect::is_full_of_notifications(const Outcome& outcome) const noexcept {
  return postgres::is_full_of_notifications(outcome);
}

bool PostgresDialect::is_about_a_full_server(const Failure& why) const noexcept {
  return postgres::is_about_a_full_server(why);
}

std::optional<Failure> PostgresDialect::unfit_for_locks(const ServerInfo& server) const {
  return postgres::unfit_for_locks(server);
}

}  // namespace dlock::postgres
