// Which keys a lock uses, and which channels. This layout is a promise: see docs/backends/redis.md. No I/O.
#pragma once

#include <array>
#include <chrono>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include <dlock/lock_kind.hpp>
#include <dlock/token.hpp>

#include "backends/redis/connection/command.hpp"
#include "backends/redis/options.hpp"

namespace dlock::redis {

// All in one hash slot, except where the lock's key has a '}' but no hash tag: as dlock:a}b, dlock:} and dlock:a{}b{c}.
struct Keys {
  std::string lock;   // the prefix and the name: the key of SET NX PX lockers in other languages
  std::string queue;  // the waiters, in order
  std::string alive;  // until when each waiter counts as alive
  std::string fence;  // the last fencing token and whose it is
};

[[nodiscard]] Keys keys_of(std::string_view prefix, std::string_view name, LockKind kind = LockKind::lock);

enum class Key { lock, queue, alive, fence };
// Each kind of locks has a prefix of its own: "dlock:", "dlock.rw:", "dlock.sem:", "dlock.elect:"; or "x", "x.rw", ...
// Without a prefix the key is the name, whatever kind it is of.
[[nodiscard]] std::string lock_key(std::string_view prefix, std::string_view name, LockKind kind = LockKind::lock);
// In a cluster, a name whose braces would put derived keys into a different slot than the lock's is percent-encoded,
// and so is a name that looks encoded.
[[nodiscard]] std::string lock_key(const Options& options, std::string_view name, LockKind kind);
// The name, from the part of a lock's key after the prefix.
[[nodiscard]] std::string name_in(const Options& options, std::string_view behind_prefix);
[[nodiscard]] inline std::string prefix_of(std::string_view prefix, LockKind kind) {
  return lock_key(prefix, "", kind);
}
// The first words of a script: the number of keys, and these keys of a lock.
[[nodiscard]] Command with_keys(std::string_view lock_key, std::initializer_list<Key> keys);

// Whether this name's key is the queue, alive or fence key of a different name. Possible only if the prefix is empty or
// made of opening braces.
[[nodiscard]] bool is_reserved(std::string_view prefix, std::string_view name);

// The lock's key, if this is the key of a fencing token.
[[nodiscard]] std::optional<std::string> lock_of_fence_key(std::string_view key);
// Whether this is a queue, alive or fence key.
[[nodiscard]] bool is_derived_key(std::string_view key);

// Redis Cluster hashes only what is between the first '{' and the next '}', if there is something.
[[nodiscard]] bool has_hash_tag(std::string_view key) noexcept;

// Escaped for the pattern of SCAN's MATCH.
[[nodiscard]] std::string escape_pattern(std::string_view text);

// The owner's value, "<client>:<owner id>", which is all that the lock's key holds. The client part names the channel
// for wake-ups.
[[nodiscard]] std::string value_of(std::string_view client, const OwnerId& owner);
void add_value(Command& command, std::string_view client, const OwnerId& owner);
[[nodiscard]] bool is_value(std::string_view text);
// The owner, if this is a value of that client.
[[nodiscard]] std::optional<OwnerId> owner_in(std::string_view value, std::string_view client);

inline constexpr std::string_view channel_prefix = "dlock:w:";
// Notifies a client's waiters of a grant, or to watch the holder: in a cluster, those of this lock, in its slot.
[[nodiscard]] std::string client_channel(std::string_view client);
[[nodiscard]] std::string client_channel(const Options& options, std::string_view client, std::string_view lock_key);

struct WakeUp {
  OwnerId owner;
  // To watch: the time until the holder's lease ends. nullopt: was granted the lock.
  std::optional<std::chrono::milliseconds> free_in;
};
// Parses a message on a client's channel: "<value>", or "<value> <ms>". nullopt: neither, or for a different client.
[[nodiscard]] std::optional<WakeUp> wake_up_in(std::string_view text, std::string_view client);

// Notifies all waiters that a lock became free.
[[nodiscard]] std::string lock_channel(const Options& options, std::string_view lock_key);

[[nodiscard]] inline std::string_view publish_command(const Options& options) {
  return options.cluster ? "SPUBLISH" : "PUBLISH";
}
// The last arguments of a script that publishes: the command, the prefix of the clients' channels, the lock's channel.
[[nodiscard]] std::array<std::string, 3> publish_arguments(const Options& options, std::string_view lock_key);

}  // namespace dlock::redis
