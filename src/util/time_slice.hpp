// How long a thread may keep its processor where others want it.
#pragma once

namespace dlock::util {

// Has the calling thread give its processor up sooner, and get it back sooner: for a thread that has little to do and
// must do it in time. Where the kernel does not know of it (Linux does since 6.12), nothing changes.
void ask_for_short_time_slices() noexcept;

}  // namespace dlock::util
