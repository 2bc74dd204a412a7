#include "backends/memory/queue_contention.hpp"

namespace dlock::memory {

void QueueContention::resume() {
  start_request();
  MemoryStore::Answer answer = store_.try_acquire(request(), {}, executor().clock());
  if (!answer.granted && answer.other_permits == 0) {
    // The store announces a hand-over on any thread; the waiter then asks again, and is granted the lock that it has.
    const auto on_change = [&executor = executor(), wake = waker()](const MemoryStore::Answer&) {
      executor.post(wake);
    };
    answer = store_.enqueue(request(), on_change, executor().clock());
  }
  if (answer.other_permits != 0) return ended(other_permits(request(), answer.other_permits));
  if (!answer.granted) return wait(answer.first_in_line ? answer.lease_ends - executor().now() : never);
  const LockRequest& asked = request();
  granted({asked.name, asked.owner, answer.token, lease_valid_until(answer.lease_ends - asked.lease, asked.lease),
           asked.lease, asked.kind, asked.mode});
}

void QueueContention::give_up() {
  (void)store_.release(request().kind, request().name, request().owner, executor().clock());
}

}  // namespace dlock::memory
