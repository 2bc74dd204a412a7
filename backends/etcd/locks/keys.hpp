// Which keys locks have. This layout is a promise: see docs/backends/etcd.md. No I/O.
//
//   dlock/orders%2F42/32698f7b3c1d5e0a.0         a holder of the lock "orders/42" or a waiter, in the order of the
//                                                revisions that created them: the lease of a client's session, and a
//                                                number that tells its keys for the lock apart
//   dlock.rw/config/read/32698f7b3c1d5e0a.0      of a read-write lock; or write/
//   dlock.sem/uploads/8/32698f7b3c1d5e0a.0       of a semaphore of 8 permits
//   dlock.elect/leader/32698f7b3c1d5e0a.0        of an election: with the value behind the holder
//   dlock/.session/32698f7b3c1d5e0a              a client's session
//   dlock/.gone/32698f7b3c1d5e0a/00000000000000a7
//                                                that request of the session, and all earlier ones, were given up while
//                                                an answer was missing
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/lock_kind.hpp>
#include <dlock/spi/backend.hpp>

#include "backends/etcd/options.hpp"
#include "backends/etcd/wire/messages.hpp"

namespace dlock::etcd {

// The keys that an acquire uses.
struct Place {
  std::string lock;                   // the prefix of all keys of the lock
  std::string own;                    // the prefix of those of this mode, and number of permits
  KeyRange before;                    // older keys in it come before the acquire
  std::size_t capacity = 1;           // the acquire waits if so many come before it
  std::vector<KeyRange> barred = {};  // must be empty: other numbers of permits
};

[[nodiscard]] Place place_of(const Options& options, const LockRequest& request);

// The prefix of all keys of a lock; without a name, of all locks of a kind.
[[nodiscard]] std::string lock_prefix(const Options& options, LockKind kind, std::string_view name);
[[nodiscard]] std::string kind_prefix(const Options& options, LockKind kind);
// The key of an acquire.
[[nodiscard]] std::string key_of(const Place& place, std::int64_t lease, std::uint32_t number);
[[nodiscard]] std::uint32_t key_number(std::string_view key);
[[nodiscard]] bool is_of_lease(std::string_view key, std::int64_t lease);
[[nodiscard]] std::string session_key(const Options& options, std::int64_t lease);
// Marks that a request of the session to create a key was given up, and all earlier unanswered ones with it.
[[nodiscard]] std::string gone_key(const Options& options, std::int64_t lease, std::uint64_t request);
// All marks of that request and of later ones.
[[nodiscard]] KeyRange gone_since(const Options& options, std::int64_t lease, std::uint64_t request);

// Parses the part of a key after the kind's prefix.
struct KeyParts {
  std::string name;
  Mode mode = Mode::exclusive;
  std::uint32_t permits = 1;
};
// nullopt: it does not belong to a lock of that kind.
[[nodiscard]] std::optional<KeyParts> parse_key(const Options& options, LockKind kind, std::string_view behind_prefix);

// A name as one component of a key: '%', '/' and a '.' at the start are percent-encoded.
[[nodiscard]] std::string encode_name(std::string_view name);

}  // namespace dlock::etcd
