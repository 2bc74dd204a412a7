// Wakes the waiters of locks in rows.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <dlock/spi/try_backend.hpp>

#include "backends/common/sql/row_request.hpp"

namespace dlock::sql {

// In tasks only.
class RowWaker {
 public:
  RowWaker() = default;
  RowWaker(const RowWaker&) = delete;
  RowWaker& operator=(const RowWaker&) = delete;
  virtual ~RowWaker() = default;

  // Calls `changed` when the lock may have become free. waiter: the owner whose acquire waits; nullptr: an observer
  // watches. Answers nullptr if it cannot wake waiters.
  [[nodiscard]] virtual std::unique_ptr<Watch> watch(const std::string& name, const OwnerId* waiter,
                                                     std::function<void()> changed) = 0;
  // Called before an acquire is asked for.
  virtual void trying(RowRequest& /*acquire*/) {}
  // An owner of this client got the lock.
  virtual void taken(const std::string& name, const OwnerId& owner) = 0;
  // An owner of this client has the lock no longer.
  virtual void left(const OwnerId& /*owner*/) {}
};

}  // namespace dlock::sql
