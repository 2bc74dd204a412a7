// A lock as a user would write it by hand, for comparison with dlock: a blocking program with the service's C client,
// and its own connection. A floor has no waiting, no renewal, no deadline, and no handling of missing answers.
#pragma once

#include <stdexcept>

namespace dlock::bench {

class Floor {
 public:
  Floor() = default;
  Floor(const Floor&) = delete;
  Floor& operator=(const Floor&) = delete;
  virtual ~Floor() = default;

  // Block. Throw std::runtime_error if the lock is held by another or was not held, or the connection breaks. Use them
  // on one thread at a time.
  virtual void acquire() = 0;
  virtual void release() = 0;

 protected:
  // Throw unless the service answered that the lock was free, or that it was held.
  static void require_free(bool was_free) {
    if (!was_free) throw std::runtime_error("the floor's lock is already held");
  }
  static void require_held(bool was_held) {
    if (!was_held) throw std::runtime_error("the floor did not hold its lock");
  }
};

}  // namespace dlock::bench
