// The strategies of MySQL, over the classes that they share with other databases. The options outlive the locks.
#pragma once

#include <memory>

#include <dlock/spi/backend.hpp>

#include "backends/common/sql/row_locks.hpp"
#include "backends/common/sql/services.hpp"
#include "backends/common/sql/session_locks.hpp"
#include "backends/mysql/options.hpp"

namespace dlock::mysql {

// strategy=table and strategy=optimistic. Waiters of plain locks and elections stand in the server's queue (Turnstile);
// those of read-write locks and semaphores poll.
[[nodiscard]] std::unique_ptr<sql::RowLocks> make_row_locks(const sql::Services& services, const Options& options,
                                                            LockKind kind);

// strategy=named and strategy=for-update: tries and waits have a session each, and a lock lives there.
[[nodiscard]] std::unique_ptr<sql::SessionLocks> make_session_locks(const sql::Services& services,
                                                                    const Options& options);

}  // namespace dlock::mysql
