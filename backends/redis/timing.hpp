// How the queue keeps going when something goes wrong, and when something is whole again.
#pragma once

#include <chrono>

namespace dlock::redis {

// A waiter asks again this often, in case its wake-up got lost.
inline constexpr std::chrono::milliseconds longest_poll{5000};
// At multiples of this, so that the questions of a client with many waiters go out together: the server reads and
// answers twenty at once for little more than one.
inline constexpr std::chrono::milliseconds poll_beat{100};
// The first in line asks so often where it may not be woken; those behind it less often, by so much for each place.
inline constexpr std::chrono::milliseconds head_poll{250};
// Waiters that no wake-up reaches find out by asking that they were granted the lock, so always within grant_for.
inline constexpr std::chrono::milliseconds longest_blind_poll{500};
// A waiter that was granted the lock has so long to confirm; then it is the next one's turn.
inline constexpr std::chrono::milliseconds grant_for{1000};
// A waiter that was silent for so long is passed over.
inline constexpr std::chrono::milliseconds alive_for{15000};
// A writer that waits without a place in the queue keeps readers out for so long after it asked: four of its longest
// pauses (poll_max).
inline constexpr std::chrono::milliseconds poll_min{50};
inline constexpr std::chrono::milliseconds poll_max{150};
inline constexpr std::chrono::milliseconds mark_for = 4 * poll_max;

// What worked for so long counts as whole: the next time that it breaks, it is tried again at once.
inline constexpr std::chrono::seconds proof_time{2};

// A connected server is asked so often whether it still is the master, also by a client that is busy.
inline constexpr std::chrono::seconds role_beat{2};

static_assert(head_poll < grant_for && longest_blind_poll < grant_for && grant_for < alive_for &&
              longest_poll * 2 < alive_for);

}  // namespace dlock::redis
