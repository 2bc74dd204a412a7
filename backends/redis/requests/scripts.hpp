// What runs inside the server: each operation on a lock is one script, atomic and safe to repeat with the same value.
// The head of each file in backends/redis/scripts says which KEYS and ARGV it has, and what it answers.
#pragma once

#include <dlock/lock_kind.hpp>

#include "backends/redis/connection/script.hpp"

namespace dlock::redis {

// Whether several may hold a lock of this kind, which then has other scripts and another layout of data.
[[nodiscard]] constexpr bool several_hold(LockKind kind) noexcept {
  return kind == LockKind::read_write || kind == LockKind::semaphore;
}

namespace scripts {
extern const Script acquire, election_acquire, release, renew, inspect, forget;
extern const Script shared_acquire, shared_release, shared_renew, shared_inspect, shared_forget;
}  // namespace scripts

[[nodiscard]] inline const Script& acquire_script(LockKind kind = LockKind::lock) noexcept {
  if (kind == LockKind::election) return scripts::election_acquire;
  return several_hold(kind) ? scripts::shared_acquire : scripts::acquire;
}
[[nodiscard]] inline const Script& renew_script(LockKind kind = LockKind::lock) noexcept {
  return several_hold(kind) ? scripts::shared_renew : scripts::renew;
}
[[nodiscard]] inline const Script& release_script(LockKind kind = LockKind::lock) noexcept {
  return several_hold(kind) ? scripts::shared_release : scripts::release;
}
[[nodiscard]] inline const Script& inspect_script(LockKind kind = LockKind::lock) noexcept {
  return several_hold(kind) ? scripts::shared_inspect : scripts::inspect;
}
[[nodiscard]] inline const Script& forget_script(LockKind kind = LockKind::lock) noexcept {
  return several_hold(kind) ? scripts::shared_forget : scripts::forget;
}

}  // namespace dlock::redis
