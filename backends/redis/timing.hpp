// The times of the queue, and of reconnecting.
#pragma once

#include <chrono>

namespace dlock::redis {

// A waiter sends a request at least this often, in case its wake-up was lost.
inline constexpr std::chrono::milliseconds longest_poll{5000};
// A waiter's requests fall on multiples of this, so that a client with many waiters sends them together: the server
// handles twenty at once for little more than one.
inline constexpr std::chrono::milliseconds poll_beat{100};
// The first waiter polls at this interval if wake-ups may not reach it; each place behind it adds as much.
inline constexpr std::chrono::milliseconds head_poll{250};
// Waiters that no wake-up reaches poll, to learn of a grant always within grant_for.
inline constexpr std::chrono::milliseconds longest_blind_poll{500};
// A waiter that was granted the lock must confirm within this time; then the next waiter gets it.
inline constexpr std::chrono::milliseconds grant_for{1000};
// A waiter that has sent no request for this long counts as dead.
inline constexpr std::chrono::milliseconds alive_for{15000};
// A waiting writer without a place in the queue keeps readers out for this long after its request: four of its longest
// pauses (poll_max).
inline constexpr std::chrono::milliseconds poll_min{50};
inline constexpr std::chrono::milliseconds poll_max{150};
inline constexpr std::chrono::milliseconds mark_for = 4 * poll_max;

// A connection or server that worked this long counts as good: after the next failure, the client retries at once.
inline constexpr std::chrono::seconds proof_time{2};

// A connected server's role is queried at this interval, even by a busy client.
inline constexpr std::chrono::seconds role_beat{2};

static_assert(head_poll < grant_for && longest_blind_poll < grant_for && grant_for < alive_for &&
              longest_poll * 2 < alive_for);

}  // namespace dlock::redis
