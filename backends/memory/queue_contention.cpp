#include "backends/memory/queue_contention.hpp"

namespace dlock::memory {

QueueContention::~QueueContention() {
  if (!queued_) return;
  waiting_.erase(request_.owner);
  // It waits, or was handed the lock by news that are still under way.
  (void)store_.release(request_.kind, request_.name, request_.owner, executor_.clock());
}

void QueueContention::ask() {
  const TimePoint sent = executor_.now();
  const MemoryStore::Answer answer = store_.enqueue(request_, session_, executor_.clock());
  if (answer.other_permits) return sink_.failed(other_permits(request_, *answer.other_permits));
  if (answer.granted) return granted(answer.token, sent);
  if (!queued_) {
    queued_ = true;
    waiting_.emplace(request_.owner, this);
  }
  if (answer.first_in_line) first_in_line(answer.lease_ends);
  sink_.busy();
}

void QueueContention::granted(FencingToken token, TimePoint since) {
  const TimePoint valid_until = lease_valid_until(since, request_.lease);
  // News that are older than the lease they bring are ignored; the client that still owns the lock is granted it again.
  if (const TimePoint now = executor_.now(); now >= valid_until) return ask_at(now);
  timer_.disarm();
  if (queued_) waiting_.erase(request_.owner);
  queued_ = false;
  sink_.granted({request_.name, request_.owner, token, valid_until, request_.lease, request_.kind, request_.mode});
}

}  // namespace dlock::memory
