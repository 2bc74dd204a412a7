// Waiting in the store's queue: an example of a backend that implements Contention itself.
#pragma once

#include <memory>
#include <unordered_map>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/executor.hpp>

#include "backends/memory/memory_store.hpp"
#include "backends/memory/session.hpp"

namespace dlock::memory {

// Enters the queue, and waits until the lock is handed over. The store notices the end of a lease only when asked, so
// the first in line asks again when the current lease ends; asking again does no harm. In tasks only.
class QueueContention final : public Contention {
 public:
  // The contentions of a client that stand in queues, by their owners.
  using Waiting = std::unordered_map<OwnerId, QueueContention*>;

  QueueContention(Executor& executor, MemoryStore& store, Session& session, Waiting& waiting,
                  const LockRequest& request, GrantSink& sink)
      : executor_(executor),
        store_(store),
        session_(session),
        waiting_(waiting),
        request_(request),
        sink_(sink),
        timer_(executor) {}
  ~QueueContention() override;

  void ask();
  // The store has handed the lock over; the lease counts from `since`.
  void granted(FencingToken token, TimePoint since);
  // The store's first in line asks when the lease ends.
  void first_in_line(TimePoint lease_ends) { ask_at(lease_ends); }

 private:
  void ask_at(TimePoint at) {
    timer_.arm(at, [this] { ask(); });
  }

  Executor& executor_;
  MemoryStore& store_;
  Session& session_;
  Waiting& waiting_;
  const LockRequest request_;
  GrantSink& sink_;
  bool queued_ = false;
  Timer timer_;
};

}  // namespace dlock::memory
