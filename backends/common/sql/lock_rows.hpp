// Reads a database's answer to a question about locks.
#pragma once

#include <vector>

#include <dlock/info.hpp>
#include <dlock/lock_kind.hpp>

#include "backends/common/sql/connection.hpp"

namespace dlock::sql {

// Rows of: name, held, holder ('' if unknown), token (0 if unknown), remaining ms or NULL, waiters or NULL. If several
// clients may hold a lock, it has a row for each holder, with three more columns: permits in all, how many this holder
// has, its token. The answer has one element for each name.
[[nodiscard]] std::vector<LockInfo> read_infos(LockKind kind, const Rows& rows);

}  // namespace dlock::sql
