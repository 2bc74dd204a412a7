// What dlock is measured against: a blocking program on the service's C client, with a connection of its own. It sends
// the same requests as dlock, or what a user would write by hand. No waiting, no renewal, no deadline, nothing done
// about answers that do not come.
#pragma once

namespace dlock::bench {

class Floor {
 public:
  Floor() = default;
  Floor(const Floor&) = delete;
  Floor& operator=(const Floor&) = delete;
  virtual ~Floor() = default;

  // Block. Throw std::runtime_error if the lock is not to be had or was not held, or the connection breaks. By one
  // thread at a time.
  virtual void acquire() = 0;
  virtual void release() = 0;
};

}  // namespace dlock::bench
