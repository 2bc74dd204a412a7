// The steps of sql::Scenario with PostgreSQL.
#pragma once

#include <vector>

#include "tests/simulation/sql/statement_steps.hpp"

namespace dlock::postgres {

[[nodiscard]] std::vector<sql::Scenario> scenarios();
void play(const sql::Scenario& scenario, sql::StepSessions& sessions);

}  // namespace dlock::postgres
