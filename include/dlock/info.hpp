// What can be asked about locks and the service, for people and tools; never a basis for decisions about ownership,
// because the answer is old by the time it is read.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/space.hpp>
#include <dlock/token.hpp>

namespace dlock {

// One of those who hold a read-write lock or a semaphore.
struct HolderInfo {
  std::string holder = {};  // "host:pid:label", empty where unknown
  Mode mode = Mode::exclusive;
  FencingToken token = {};
  std::optional<std::chrono::nanoseconds> remaining = std::nullopt;
};

// One lock, as the service sees it. Names and holders are what others wrote into the service, byte for byte: whoever
// may write there decides what they contain. Show them by printable().
struct LockInfo {
  std::string name;
  bool held = false;
  std::string holder = {};                                           // "host:pid:label", empty where unknown
  FencingToken token = {};                                           // of the current or last lease; 0 where unknown
  std::optional<std::chrono::nanoseconds> remaining = std::nullopt;  // until the service frees it by itself
  // Where Capabilities::counts_waiters: those that the service knows of, and those of the client that asks.
  std::optional<std::uint64_t> waiters = std::nullopt;
  Space space = Space::lock;
  // Of a read-write lock or a semaphore: all who hold it; then `holder` and `remaining` are those of who holds it
  // longest from now, unless it is renewed.
  std::vector<HolderInfo> holders = {};
  std::uint32_t permits = 0;  // of a semaphore that is held or waited for
  std::string value = {};     // of an election that is held: what the leader says of itself, byte for byte
};

// One result of Client::diagnose().
struct Finding {
  enum class Severity { ok, note, warning, error } severity;
  std::string check;    // a short name of what was looked at, e.g. "file system"
  std::string message;  // what was found and, where it is not well, what to do
};

// The text as a terminal or a log may show it: control characters, escape sequences among them, bytes that are not
// UTF-8, line separators and controls of bidirectional text as \xNN for each byte, everything else as it is. Any
// thread; throws std::bad_alloc only.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace dlock
