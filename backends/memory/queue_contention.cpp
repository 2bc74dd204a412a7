#include "backends/memory/queue_contention.hpp"

namespace dlock::memory {

// The owner waits, or was handed the lock by a task that has not run yet.
QueueContention::~QueueContention() {
  if (queued_) (void)store_.release(request_.kind, request_.name, request_.owner, executor_.clock());
}

void QueueContention::ask() {
  MemoryStore::Answer answer = store_.try_acquire(request_, {}, executor_.clock());
  if (!answer.granted && answer.other_permits == 0) {
    queued_ = true;
    const auto handler = lifetime_.guard([this](const MemoryStore::Answer& later) {
      if (queued_) on_answer(later);
    });
    answer = store_.enqueue(
        request_,
        [&executor = executor_, handler](const MemoryStore::Answer& later) {
          executor.post([handler, later] { handler(later); });
        },
        executor_.clock());
  }
  on_answer(answer);
}

void QueueContention::on_answer(const MemoryStore::Answer& answer) {
  if (answer.other_permits != 0) return sink_.failed(other_permits(request_, answer.other_permits));
  if (!answer.granted) {
    if (answer.first_in_line) timer_.arm(answer.lease_ends, [this] { ask(); });
    return sink_.busy();
  }
  const TimePoint valid_until = lease_valid_until(answer.lease_ends - request_.lease, request_.lease);
  // The task ran late. If the store still knows the owner, asking gets a new lease.
  if (executor_.now() >= valid_until) return ask();
  timer_.disarm();
  queued_ = false;
  sink_.granted(
      {request_.name, request_.owner, answer.token, valid_until, request_.lease, request_.kind, request_.mode});
}

}  // namespace dlock::memory
