// Holding a lock with nothing else to do.
#pragma once

#include <dlock/lease.hpp>

#include "cli/signal_queue.hpp"

namespace dlock::cli {

struct Kept {
  enum Reason { until, signal, lost } reason;
  int by = 0;  // the signal
};

// Returns when the time has come, at INT, TERM, HUP or QUIT, or when the lease is lost. Stops and continues with its
// job like any program.
[[nodiscard]] Kept keep(const Lease& lease, TimePoint until, SignalQueue& signals);

}  // namespace dlock::cli
