// The kinds of locks. Each has its own name space: lock "a", read-write lock "a", semaphore "a" and election "a" are
// independent.
#pragma once

#include <string_view>

namespace dlock {

// A kind of locks.
enum class LockKind { lock, read_write, semaphore, election };

// How an owner holds a read-write lock: alone, or shared with others. All other kinds are exclusive.
enum class Mode { exclusive, shared };

// "lock", "read-write lock", "semaphore", "election".
[[nodiscard]] constexpr std::string_view to_string(LockKind kind) noexcept {
  switch (kind) {
    case LockKind::lock:
      return "lock";
    case LockKind::read_write:
      return "read-write lock";
    case LockKind::semaphore:
      return "semaphore";
    case LockKind::election:
      return "election";
  }
  return "";
}

}  // namespace dlock
