// The steps of sql::Scenario with MariaDB.
#pragma once

#include <vector>

#include "tests/simulation/sql/statement_steps.hpp"

namespace dlock::mysql {

[[nodiscard]] std::vector<sql::Scenario> scenarios();
void play(const sql::Scenario& scenario, sql::StepSessions& sessions);

}  // namespace dlock::mysql
