#include "backends/postgres/sql/sqlstate.hpp"

#include <algorithm>
#include <array>

#include "backends/postgres/schema/layout.hpp"
#include "backends/postgres/sql/identifier.hpp"

namespace dlock::postgres {

using namespace meanings;  // NOLINT(google-build-using-namespace)

namespace {

struct Known {
  std::string_view state;  // five characters, or the two of a class
  Meaning meaning;
};

// Appendix A of PostgreSQL's manual. A code goes before its class.
constexpr std::array known = {
    Known{"55P03", busy},  // lock_not_available: NOWAIT, lock_timeout

    Known{"40001", again},    // serialization_failure
    Known{"40P01", again},    // deadlock_detected
    Known{"40003", cut_off},  // statement_completion_unknown
    Known{"40", again},       // transaction_rollback
    Known{"57014", again},    // query_canceled: statement_timeout, pg_cancel_backend(), a conflict with recovery
    Known{"23505", again},    // unique_violation: another client was faster; the next three, too
    Known{"42P06", again},    // duplicate_schema
    Known{"42P07", again},    // duplicate_table
    Known{"42710", again},    // duplicate_object

    Known{"25006", elsewhere},  // read_only_sql_transaction: a standby
    Known{"25P02", elsewhere},  // in_failed_sql_transaction: the client does not know the state of this session
    Known{"25P03", cut_off},    // idle_in_transaction_session_timeout
    Known{"25", elsewhere},     // invalid_transaction_state: the same
    Known{"26000", elsewhere},  // invalid_sql_statement_name: prepared in a session that is not this one
    Known{"42P05", elsewhere},  // duplicate_prepared_statement: the same
    Known{"57P03", elsewhere},  // cannot_connect_now: starting, stopping, recovering
    Known{"57P01", cut_off},    // admin_shutdown, pg_terminate_backend()
    Known{"57P02", cut_off},    // crash_shutdown
    Known{"57P05", cut_off},    // idle_session_timeout
    Known{"57P04", cut_off},    // database_dropped
    Known{"08", cut_off},       // connection exceptions; of poolers, too

    Known{"57", again},  // operator_intervention

    Known{"53", later},     // insufficient_resources
    Known{"54000", later},  // program_limit_exceeded: the queue of notifications is full
    Known{"55", later},     // object_not_in_prerequisite_state
    Known{"58", later},     // system_error
    Known{"72", again},     // snapshot_too_old
    Known{"F0", later},     // config_file_error

    Known{"3F000", not_set_up},  // invalid_schema_name
    Known{"42P01", not_set_up},  // undefined_table
    Known{"42703", not_set_up},  // undefined_column
    Known{"42804", not_set_up},  // datatype_mismatch
    Known{"42P10", not_set_up},  // invalid_column_reference: no such unique index for ON CONFLICT

    Known{"42501", denied},    // insufficient_privilege
    Known{"28", denied},       // invalid_authorization_specification
    Known{"3D000", wrong},     // invalid_catalog_name: no such database
    Known{"22021", wrong},     // character_not_in_repertoire
    Known{"22P05", wrong},     // untranslatable_character: the database's encoding has none for it
    Known{"0A", not_here},     // feature_not_supported
    Known{"42883", not_here},  // undefined_function: a server that is too old

    // A statement fails in this way each time.
    Known{"22", nonsense},  // data_exception
    Known{"23", nonsense},  // integrity_constraint_violation
    Known{"42", nonsense},  // syntax_error_or_access_rule_violation
};

std::optional<Meaning> known_meaning(std::string_view sqlstate) noexcept {
  if (sqlstate.size() != 5) return std::nullopt;
  for (const std::size_t length : {std::size_t{5}, std::size_t{2}}) {
    const auto* const found = std::ranges::find(known, sqlstate.substr(0, length), &Known::state);
    if (found != known.end()) return found->meaning;
  }
  return std::nullopt;
}

}  // namespace

Meaning meaning_of(std::string_view sqlstate) noexcept {
  return known_meaning(sqlstate).value_or(unknown);
}

std::optional<Meaning> PostgresDialect::find(std::string_view sqlstate) const noexcept {
  return known_meaning(sqlstate);
}

std::string PostgresDialect::advice(std::string_view sqlstate) const {
  if (sqlstate == "42501") return "; this role needs: " + needed_grants(schema_);
  if (postgres::meaning_of(sqlstate).remedy == Remedy::set_up) {
    return "; schema " + quote_identifier(schema_) +
           " is missing or incomplete in this database: run \"dlock init\" with a role that may create it";
  }
  if (sqlstate == "22P05" || sqlstate == "22021") {
    return "; this database's encoding has no characters for that name: use another name, or a database in UTF8";
  }
  if (sqlstate == "25006") {
    return "; this is a standby and locks need the primary, or transactions are read-only by default here";
  }
  if (sqlstate == "53200") {
    return "; if that is \"out of shared memory\", the server holds too many locks: take fewer of them at once, or "
           "raise max_locks_per_transaction";
  }
  if (sqlstate == "26000" || sqlstate == "42P05") {
    return "; there seems to be a pooler that dlock did not notice (or pooler=session is wrong)";
  }
  return {};
}

}  // namespace dlock::postgres
