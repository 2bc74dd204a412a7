// The kinds of locks. Each is a name space of its own: lock "a", read-write lock "a" and semaphore "a" and
// election "a" do not touch each other.
#pragma once

#include <string_view>

namespace dlock {

// A kind of locks.
enum class Space { lock, read_write, semaphore, election };

// How a read-write lock is held: alone, or together with others who share it. All other kinds are exclusive.
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
