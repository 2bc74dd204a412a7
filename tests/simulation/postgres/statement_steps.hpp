// The steps of sql::Scenario with PostgreSQL:
//   1 lease.acquire x a h 60000 => a token      session 1 says this, '' for an empty parameter, and is answered that
//   1 begin ; row_lock.try_lock x h => ...      in one query
//   2 fence.lock_slice 7 x h 60000 ...          it has to wait
//   2 <= token pid                              and is answered now
//   3 hears me x                                a notification, its tab as a blank
//   2 end                                       of the connection
//   pass 300                                    milliseconds
//   locks lease x                               by a transaction of another client, until it "unlocks"
// An answer has the cells of each row, without those at the end that are empty, rows in order with "," between them and
// commands with "/". A cell is "-" for NULL, "token", "pid" of the session, "lease" for some of 60000 ms, "name" of the
// application; instead of all that, the SQLSTATE of a refusal.
#pragma once

#include <vector>

#include "tests/simulation/sql/statement_steps.hpp"

namespace dlock::postgres {

[[nodiscard]] std::vector<sql::Scenario> scenarios();
void play(const sql::Scenario& scenario, sql::StepSessions& sessions);

}  // namespace dlock::postgres
