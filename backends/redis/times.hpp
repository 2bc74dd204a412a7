// How the queue keeps going when something goes wrong: poll < grant < alive.
#pragma once

#include <chrono>

namespace dlock::redis {

// The first in line asks again this often, in case its wake-up got lost; those behind it less often the further back.
inline constexpr std::chrono::milliseconds kHeadPoll{250};
inline constexpr std::chrono::milliseconds kLongestPoll{5000};
// Waiters that no wake-up reaches find out by asking that they were granted the lock, so always within kGrant.
inline constexpr std::chrono::milliseconds kLongestBlindPoll{500};
// A waiter that was granted the lock has so long to confirm; then it is the next one's turn.
inline constexpr std::chrono::milliseconds kGrant{1000};
// A waiter that was not heard of for so long is passed over.
inline constexpr std::chrono::milliseconds kAlive{15000};

static_assert(kHeadPoll < kGrant && kLongestBlindPoll < kGrant && kGrant < kAlive && kLongestPoll * 2 < kAlive);

}  // namespace dlock::redis
