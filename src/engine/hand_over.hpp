// Where threads of the engine hand something over to each other: a turn, a task, the lead, a place to sleep. A test
// that compiles the engine with DLOCK_INJECT_DELAYS defines hand_over() and delays threads there, so that they meet in
// orders that are rare otherwise. In all other builds it does nothing.
#pragma once

namespace dlock::engine {

#ifdef DLOCK_INJECT_DELAYS
void hand_over() noexcept;
#else
inline void hand_over() noexcept {}
#endif

}  // namespace dlock::engine
