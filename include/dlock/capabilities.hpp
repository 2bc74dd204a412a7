// What a backend can and cannot do, so that a program (and the conformance suite) need not guess.
//
//   if (!client.capabilities().fair) log("waiters may overtake each other");
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include <dlock/lock_kind.hpp>

namespace dlock {

// Who can take part in a lock.
enum class Scope { process, machine, network };

// What keeps a lease alive.
enum class LeaseKind {
  // Every lock has its own lease in the service (AcquireOptions::lease); the client renews each.
  per_lock,
  // All locks of a client live as long as its session with the service. The backend keeps the session alive.
  session,
  // The lock lives as long as the holder's process. It does not expire.
  process,
};

// What happens to fencing tokens when the service loses data that it acknowledged.
enum class FencingDurability {
  // Nothing: a later token may be smaller.
  none,
  // Tokens still grow, as long as their wall clock is not stepped back across the loss.
  wall_clock,
  // The service orders tokens by itself and does not lose acknowledged data.
  service,
};

// What a backend can do, in the strategy that the client uses.
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
  // Of the waiters of one client for one name the service knows only the first: they are served in their order (`fair`)
  // when it is the client's turn, and other clients count one of them.
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

  // Whether it has this kind of locks.
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
