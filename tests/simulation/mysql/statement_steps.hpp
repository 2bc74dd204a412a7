// The steps of sql::Scenario with MariaDB:
//   1 acquire x a ; release y b => yes token ; no     session 1 sends these requests in one query, and is answered that
//   1 lease.wait x 60000000 ...      it has to wait; this and the like are statements by their words, '' is empty
//   1 <= 1                           and is answered now
//   1 end                            of the connection
//   pass 300                         milliseconds
//   locks lease x                    by a transaction of another client, until it "unlocks"
// After name and owner, a request may have: lease=ms (60000), held (may_be_held), gave_up, seen=owner:version, 1/9
// (weight and permits), mark=ms, place=session, quiet (for the query). The answer to it is yes or no and, of an
// acquire, "token", which must be greater than all before, or "same" as the owner has already; owner and version that
// were seen; "permits" and the number that others use; "lease" for some of 60000 ms, "soon" for up to half a second. A
// statement answers the cells of its rows with "," between rows, or else the inserted token, or the number of affected
// rows, with "/" between statements. A cell is "-" for NULL, "token", "lease", or in the last column "s1" for
// session 1. Instead of all that, the code of a refusal.
#pragma once

#include <vector>

#include "tests/simulation/sql/statement_steps.hpp"

namespace dlock::mysql {

[[nodiscard]] std::vector<sql::Scenario> scenarios();
void play(const sql::Scenario& scenario, sql::StepSessions& sessions);

}  // namespace dlock::mysql
