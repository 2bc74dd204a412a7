// What runs inside the server: each operation on a lock is one script, atomic and safe to repeat with the same value.
// Read-write locks and semaphores have scripts of their own (sharing_scripts.hpp), elections an acquire that also tells
// who watches them; for all others they are those of the plain lock.
#pragma once

#include <dlock/lock_kind.hpp>

#include "backends/redis/connection/script.hpp"

namespace dlock::redis {

// Whether it is a kind that several may hold: then its scripts and its keys are others than the plain lock's.
[[nodiscard]] constexpr bool several_hold(LockKind kind) noexcept {
  return kind == LockKind::read_write || kind == LockKind::semaphore;
}

// Those that tell waiters have a form for clusters: sharded, where the channels are in the slot of KEYS[2].

// KEYS: lock, queue, alive, fence.  ARGV: value, lease in ms, mode, alive in ms, grant in ms, holder, ticket.
// mode: "try" (do not queue), "queue" (queue; a wake-up reaches us) or "blind" (queue; we find out by asking again).
// ticket: the place that we had, if we are to have it again; else 0.
// Answers the fence: ours, for a full lease from now on. {0, ms, rank, joined, ticket}: another owner's for so many ms
// (-1: without end, -2: free, but more dead waiters are before us than one call removes: ask again), how many waiters
// are before us (-1: we are not in the queue), 1 if we were not in the queue until now, and our place in it.
[[nodiscard]] const Script& acquire_script(LockKind kind = LockKind::lock, bool sharded = false) noexcept;

// KEYS: lock, fence.  ARGV: value, lease in ms.  Answers 1: extended; 0: not ours, nothing was touched.
[[nodiscard]] const Script& renew_script(LockKind kind = LockKind::lock) noexcept;

// KEYS: lock, queue, alive.  ARGV: value, grant in ms, "leave" to leave the queue, too.
// Answers 1 or {1, p, more}: freed; {0, p, more}: another owner's; {-1, p, more}: free; p = 1 unless publishing is
// forbidden to us; more = 1 if the lock waits to be handed on and one call could not remove all dead waiters: ask
// again.
[[nodiscard]] const Script& release_script(LockKind kind = LockKind::lock, bool sharded = false) noexcept;

// KEYS: lock, queue, fence.
// Answers {value or nil, remaining ms, text in the fence key or nil, length of the queue}.
[[nodiscard]] const Script& inspect_script(LockKind kind = LockKind::lock) noexcept;

// KEYS: lock, queue, fence.  ARGV: how old the last token is to be, in microseconds.
// Removes the record of the last token if the lock is free and has no waiters. Answers 1: removed; 0: not.
[[nodiscard]] const Script& forget_script(LockKind kind = LockKind::lock) noexcept;

}  // namespace dlock::redis
