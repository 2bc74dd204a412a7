// The abilities of a backend, so that a program (and the conformance suite) need not guess. Plain values; any thread.
//
//   if (!client.capabilities().fair) log("waiters may overtake each other");
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include <dlock/lock_kind.hpp>

namespace dlock {

// Where clients must run to share a lock: in one process, on one machine, or anywhere.
enum class Scope { process, machine, network };

// How a lease is kept alive.
enum class LeaseKind {
  // Every lock has its own lease in the service (AcquireOptions::lease); the client renews each.
  per_lock,
  // All locks of a client live as long as its session with the service. The backend keeps the session alive.
  session,
  // The lock lives as long as the holder's process. It does not expire.
  process,
};

// Whether fencing tokens still grow after the service lost data that it acknowledged.
enum class FencingDurability {
  // No: a later token may be smaller.
  none,
  // Yes, if their wall clock is not stepped back across the loss.
  wall_clock,
  // Yes: the service orders tokens by itself and does not lose acknowledged data.
  service,
};

// The abilities of a backend in the strategy that the client uses.
struct Capabilities {
  std::string_view backend = {};   // URL scheme, e.g. "redis"
  std::string_view strategy = {};  // the variant in use, e.g. "queue"; empty where there is only one
  Scope scope = Scope::process;
  LeaseKind lease_kind = LeaseKind::per_lock;
  FencingDurability fencing = FencingDurability::none;
  bool fair = false;            // the service serves waiters in the order of their arrival
  bool wakes_waiters = true;    // a release wakes waiters; false: they poll
  bool wakes_one = false;       // a release wakes one waiter, not all of them
  bool counts_waiters = false;  // inspect() knows the number of waiters
  // The service knows only the first waiter of each client for a name. When that client's turn comes, its waiters are
  // served in their order (`fair`); other clients count one of them.
  bool one_waiter_per_client = false;
  // Waiters of read-write locks and semaphores poll, and have no order, whatever the members above say.
  bool sharers_poll = false;
  // How many locks one client can hold at the same time; 0: limited only by memory.
  std::uint32_t max_locks = 0;
  bool read_write_locks = false;
  bool semaphores = false;
  bool elections = false;
  bool can_inspect = false;
  bool can_list = false;
  bool can_break = false;
  bool can_forget = false;
  bool can_forget_idle = false;  // the service knows when a name was last taken
  // The backend answers requests inside the call, because it waits for no service. Then threads of a client run their
  // own requests, and wait for each other for a moment.
  bool immediate = false;
  bool close_on_exec = true;  // programs that this process executes inherit no descriptor of the client
  // Bounds on AcquireOptions::lease; outside them an acquire fails with invalid_argument.
  std::chrono::nanoseconds min_lease = std::chrono::milliseconds(10);
  std::chrono::nanoseconds max_lease = std::chrono::hours(24);

  // Whether the backend has this kind of locks.
  [[nodiscard]] constexpr bool has(LockKind kind) const noexcept {
    switch (kind) {
      case LockKind::lock:
        return true;
      case LockKind::read_write:
        return read_write_locks;
      case LockKind::semaphore:
        return semaphores;
      case LockKind::election:
        return elections;
    }
    return false;
  }
};

// The name of the enumerator, such as "per_lock".
[[nodiscard]] std::string_view to_string(Scope scope) noexcept;
[[nodiscard]] std::string_view to_string(LeaseKind kind) noexcept;
[[nodiscard]] std::string_view to_string(FencingDurability durability) noexcept;

}  // namespace dlock
