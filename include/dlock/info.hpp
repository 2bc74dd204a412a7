// Information on locks and the service, for people and tools. Never decide about ownership by it: it may be out of date
// when it arrives.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/lock_kind.hpp>
#include <dlock/token.hpp>

namespace dlock {

// One holder of a read-write lock or a semaphore.
struct HolderInfo {
  std::string holder = {};  // "host:pid:label", empty where unknown
  Mode mode = Mode::exclusive;
  FencingToken token = {};
  std::optional<std::chrono::nanoseconds> remaining = std::nullopt;
};

// One lock, as the service reports it. Other programs wrote the names and holders into the service and may have written
// anything. Show them through printable().
struct LockInfo {
  std::string name;
  bool held = false;
  std::string holder = {};                                           // "host:pid:label", empty where unknown
  FencingToken token = {};                                           // of the current or last lease; 0 where unknown
  std::optional<std::chrono::nanoseconds> remaining = std::nullopt;  // until the service frees it by itself
  // If Capabilities::counts_waiters: the waiters that the service knows, plus those of this client.
  std::optional<std::uint64_t> waiters = std::nullopt;
  LockKind kind = LockKind::lock;
  // Of a read-write lock or a semaphore: all holders. `holder` and `remaining` are then those of the lease that expires
  // last.
  std::vector<HolderInfo> holders = {};
  std::uint32_t permits = 0;  // of a semaphore that is held or waited for
  std::string value = {};     // of an election that is held: the leader's value, byte for byte
};

// One result of Client::diagnose().
struct Finding {
  enum class Severity { ok, note, warning, error } severity;
  std::string check;    // a short name of the check, e.g. "file system"
  std::string message;  // the finding, and the remedy if there is a problem
};

// The text in a form that is safe for terminals and logs. Control characters (so also escape sequences), bytes that are
// not UTF-8, line separators and controls of bidirectional text become \xNN per byte. All else stays unchanged. Any
// thread; throws std::bad_alloc only.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace dlock
