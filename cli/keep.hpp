// Holding a lock with nothing else to do.
#pragma once

#include <dlock/clock.hpp>

#include "cli/held.hpp"
#include "cli/signal_queue.hpp"

namespace dlock::cli {

struct Kept {
  enum Reason { until, signal, lost, other, leash } reason;
  int by = 0;  // the signal
};

// Returns when the time has come, at INT, TERM, HUP or QUIT, when the lease is lost, or when the other descriptor is
// readable, if there is one; or that of a leash. Stops and continues with its job like any program.
[[nodiscard]] Kept keep(const Held& held, TimePoint until, SignalQueue& signals, int other = -1, int leash = -1);

}  // namespace dlock::cli
