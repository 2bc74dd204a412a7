// Waiting in the store's queue. A backend author learns from it how to wait in the queue of a service: ask, wait for
// the hand-over, and leave nothing behind.
#pragma once

#include <dlock/spi/waiter.hpp>

#include "backends/memory/memory_store.hpp"

namespace dlock::memory {

// The first in line asks again when the current lease ends, because the store does not notice that. Asking again does
// no harm. In tasks only.
class QueueContention final : public Waiter {
 public:
  QueueContention(Executor& executor, MemoryStore& store, const LockRequest& request, GrantSink& sink)
      : Waiter(executor, request, sink), store_(store) {}
  ~QueueContention() override { cancel(); }

 private:
  void resume() override;
  void give_up() override;

  MemoryStore& store_;
};

}  // namespace dlock::memory
