// How long a thread keeps its processor while others want it.
#pragma once

namespace dlock::util {

// Makes the calling thread give up its processor sooner, and get it back sooner: for a thread with little work that
// must be in time. No effect before Linux 6.12.
void ask_for_short_time_slices() noexcept;

}  // namespace dlock::util
