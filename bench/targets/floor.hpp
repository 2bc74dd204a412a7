// A lock as a user would write it by hand, which dlock is compared with: a blocking program on the service's C client,
// with a connection of its own. No waiting, no renewal, no deadline, nothing done about answers that do not come.
#pragma once

#include <stdexcept>

namespace dlock::bench {

class Floor {
 public:
  Floor() = default;
  Floor(const Floor&) = delete;
  Floor& operator=(const Floor&) = delete;
  virtual ~Floor() = default;

  // Block. Throw std::runtime_error if the lock is held by another or was not held, or the connection breaks. By one
  // thread at a time.
  virtual void acquire() = 0;
  virtual void release() = 0;

 protected:
  // What the service said.
  static void require_free(bool was_free) {
    if (!was_free) throw std::runtime_error("the floor's lock is already held");
  }
  static void require_held(bool was_held) {
    if (!was_held) throw std::runtime_error("the floor did not hold its lock");
  }
};

}  // namespace dlock::bench
