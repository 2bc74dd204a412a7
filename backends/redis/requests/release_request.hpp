// Requests to Redis to free a lock.
#pragma once

#include <functional>
#include <string>

#include <dlock/spi/cleanup.hpp>

#include "backends/redis/requests/answers.hpp"
#include "backends/redis/requests/keys.hpp"
#include "backends/redis/topology/topology.hpp"

namespace dlock::redis {

struct ReleaseRequest {
  LockKind kind;
  std::string lock_key;
  std::string value;
  bool leave;  // this value leaves the queue, too
  Line line;
  TimePoint deadline;  // of the answer
};

// Frees the lock if this value holds it, and grants it to a living waiter. Repeats the request if there are many dead
// ones. The topology outlives it.
void request_release(Topology& topology, const ReleaseRequest& request,
                     std::function<void(Node*, Result<ReleaseAnswer>)> done);

// Frees it when the client ends, without an answer (CommandClient::last_word()). The value leaves the queue.
void release_at_the_end(Topology& topology, LockKind kind, const std::string& lock_key, const std::string& value);

// client: this client's part of its values. publish_forbidden: called if this user may not notify waiters. The topology
// outlives it.
[[nodiscard]] Cleanup::Ask release_requests(Topology& topology, std::string client,
                                            std::function<void()> publish_forbidden);

}  // namespace dlock::redis
