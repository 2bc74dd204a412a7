// Waiting in the store's queue. A backend author learns from it how to implement Contention for a service that has a
// queue of its own: ask, wait for the hand-over, and leave nothing behind.
#pragma once

#include <dlock/spi/backend.hpp>
#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/memory/memory_store.hpp"

namespace dlock::memory {

// The first in line asks again when the current lease ends, because the store does not notice that. Asking again does
// no harm. In tasks only.
class QueueContention final : public Contention {
 public:
  QueueContention(Executor& executor, MemoryStore& store, const LockRequest& request, GrantSink& sink)
      : executor_(executor), store_(store), request_(request), sink_(sink), timer_(executor) {}
  ~QueueContention() override;

  void ask();

 private:
  void on_answer(const MemoryStore::Answer& answer);

  Executor& executor_;
  MemoryStore& store_;
  const LockRequest request_;
  GrantSink& sink_;
  bool queued_ = false;  // the store may hand the lock over
  Timer timer_;
  Lifetime lifetime_;
};

}  // namespace dlock::memory
