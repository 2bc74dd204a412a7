// What became of one try for a lock that lives in a session.
#pragma once

#include <dlock/spi/backend.hpp>

#include "backends/postgres/sql/sqlstate.hpp"

namespace dlock::postgres {

struct TryAnswer {
  enum class Status { granted, busy, failed };
  Status status = Status::failed;
  Grant grant = {};               // granted, by AdvisoryTries; LockSession::hold() makes one
  Remedy remedy = Remedy::final;  // failed: nothing is left held. Remedy::reconnect: it does that itself.
  Failure why = {};
};

}  // namespace dlock::postgres
