// The kinds of locks. Each has its own name space: lock "a", read-write lock "a", semaphore "a" and election "a" are
// independent.
#pragma once

#include <string_view>

namespace dlock {

// A kind of locks.
enum class Space { lock, read_write, semaphore, election };

// How an owner holds a read-write lock: alone, or shared with others. All other kinds are exclusive.
enum class Mode { exclusive, shared };

// "lock", "read-write lock", "semaphore", "election".
[[nodiscard]] constexpr std::string_view to_string(Space space) noexcept {
  switch (space) {
    case Space::lock:
      return "lock";
    case Space::read_write:
      return "read-write lock";
    case Space::semaphore:
      return "semaphore";
    case Space::election:
      return "election";
  }
  return "";
}

}  // namespace dlock
