// The strategies of PostgreSQL, over the classes that they share with other databases.
#pragma once

#include <memory>

#include <dlock/spi/backend.hpp>

#include "backends/common/sql/row_locks.hpp"
#include "backends/common/sql/services.hpp"
#include "backends/common/sql/session_locks.hpp"
#include "backends/postgres/options.hpp"

namespace dlock::postgres {

// strategy=table and strategy=optimistic: a kind of locks has a table and a channel. The options outlive the locks.
[[nodiscard]] std::unique_ptr<RowLocks> make_row_locks(const Services& services, const Options& options, LockKind kind);

//                | tries                                    | waits               | a lock lives
//   -------------+------------------------------------------+---------------------+-----------------------------------
//   advisory     | together on one session (AdvisoryTries)  | a session for each  | where it was tried or waited for
//   for-update   | a session for each                       | the same            | in that session
[[nodiscard]] std::unique_ptr<SessionLocks> make_session_locks(const Services& services, const Options& options);

}  // namespace dlock::postgres
