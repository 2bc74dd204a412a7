// The same locks written by hand on blocking libpq: the statements that dlock uses, prepared, on a connection that does
// nothing else. No waiting, no renewal, no deadline, nothing done about lost answers: what dlock is measured against.
#pragma once

#include <memory>
#include <string>

namespace bench {

// One connection, for one lock at a time.
class Floor {
 public:
  virtual ~Floor() = default;

  // Both throw std::runtime_error if the lock is not to be had, or was not held, or the connection breaks.
  virtual void acquire() = 0;
  virtual void release() = 0;
};

// The strategy is called as in a URL; the URL is one that libpq understands. The tables have to be there.
[[nodiscard]] std::unique_ptr<Floor> make_floor(const std::string& strategy, const std::string& url,
                                                const std::string& name);

}  // namespace bench
