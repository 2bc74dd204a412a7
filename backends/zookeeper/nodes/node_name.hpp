// Node names: converts a lock's name to a path, and parses the children of a lock's node. No I/O.
//
//   /dlock/orders%2F42                                                           the lock "orders/42"
//   /dlock/orders%2F42/_c_0e1cf9d8-5f6c-4a49-8f0a-1c0f0c3f1b2d-lock-0000000017   a holder or a waiter
//   /dlock.rw/orders%2F42/_c_0e1cf9d8-5f6c-4a49-8f0a-1c0f0c3f1b2d-__READ__0000000017     the same of a read-write lock
//   /dlock.sem/orders%2F42/_c_0e1cf9d8-5f6c-4a49-8f0a-1c0f0c3f1b2d-permit-of-8-0000000017   and of a semaphore
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <dlock/lock_kind.hpp>
#include <dlock/token.hpp>

#include "backends/zookeeper/options.hpp"

namespace dlock::zookeeper {

// --- Paths -----------------------------------------------------------------------------------------------------------

// A name as one component of a path: '%', '/' and what ZooKeeper refuses in a path are percent-encoded, and so are "."
// and "..".
[[nodiscard]] std::string encode_name(std::string_view name);
// The inverse; nullopt for what encode_name() does not make.
[[nodiscard]] std::optional<std::string> decode_name(std::string_view component);

// The node below which the locks of a kind are. Each kind has its own, next to the prefix, which is "" or "/a/b". Below
// the root, all kinds share one, and the user keeps their names apart.
[[nodiscard]] std::string kind_path(std::string_view prefix, LockKind kind);
// The lock's node.
[[nodiscard]] std::string lock_path(std::string_view prefix, std::string_view name, LockKind kind = LockKind::lock);
[[nodiscard]] std::string_view last_component(std::string_view path) noexcept;

// --- Children of a lock's node ---------------------------------------------------------------------------------------

// 128 random bits as the layout writes them. It makes the node's name unique.
[[nodiscard]] std::string guid_text(Layout layout, const OwnerId& random);

// The claim of a node in a queue, from its name.
struct Claim {
  LockKind kind = LockKind::lock;
  Mode mode = Mode::exclusive;  // `shared` with LockKind::read_write only
  std::uint32_t permits = 1;    // of a semaphore: how many hold it at most
};

// The name of a new node in the queue; the server adds the sequence number. A semaphore's is the same in all layouts.
[[nodiscard]] std::string queue_node_prefix(Layout layout, std::string_view guid, const Claim& claim = {});

struct QueueNode {
  enum class Kind {
    member,   // holds the lock or waits for it, in our layout and of our kind
    foreign,  // the same in a layout that does not exclude ours, or of another kind
    // One of the two children below which Curator's semaphores are kept (semaphore_children). They stay for a while
    // after the last client has left.
    semaphore,
    unknown,  // no lock's
  } kind = Kind::unknown;
  std::int64_t sequence = 0;     // of a member
  Mode mode = Mode::exclusive;   // the same
  std::uint32_t permits = 1;     // the same
  std::string_view layout = {};  // of a foreign one, for people
};

// A node in the queue of a lock of that kind.
[[nodiscard]] QueueNode parse_queue_node(Layout layout, std::string_view name, LockKind kind = LockKind::lock) noexcept;

// A client that requests a lease of Curator's semaphore has a node below the first, then below both, then below the
// second.
inline constexpr std::array<std::string_view, 2> semaphore_children = {"locks", "leases"};
inline constexpr std::string_view semaphore_layout = "Curator's semaphore (a node below locks or leases)";

// The server's counter has 32 bits: beyond this it sticks or becomes negative, and no longer tells the order. The
// margin is for clients that do not check.
[[nodiscard]] constexpr bool is_poisoned(std::int64_t sequence) noexcept {
  return sequence < 0 || sequence >= (std::int64_t{1} << 31) - (std::int64_t{1} << 16);
}

// The order: by number, and for equal numbers by the transaction that created them.
struct QueuePosition {
  std::int64_t sequence = 0;
  std::int64_t created = 0;  // czxid

  friend constexpr auto operator<=>(const QueuePosition&, const QueuePosition&) noexcept = default;
};

}  // namespace dlock::zookeeper
