// A request for a lock: the acquire script and, with replicas_ack, the acknowledgement of the replicas.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <dlock/spi/backend.hpp>

#include "backends/redis/requests/answers.hpp"
#include "backends/redis/topology/topology.hpp"

namespace dlock::redis {

enum class AcquireMode {
  try_once,  // do not queue
  queue,     // queue; wake-ups reach this client
  blind,     // queue; this client polls
  mark,      // do not queue; a writer that finds it busy keeps readers out for a moment
};

struct Place {
  AcquireMode mode = AcquireMode::try_once;
  std::uint64_t ticket = 0;  // to get the earlier place back, if it was lost
};

// In tasks only.
class Acquirer {
 public:
  // A grant counts from `sent`. A failure is errc::unavailable if the request had no effect (any more), errc::ambiguous
  // if it may have.
  using Handler = std::function<void(Result<AcquireAnswer> answer, TimePoint sent)>;

  // client: this client's part of its values.
  Acquirer(Topology& topology, std::string client) : topology_(topology), client_(std::move(client)) {}

  // Answers at the deadline at the latest, never inside the call. In an outage, a request that waits may be refused
  // instead of sent; then returns 0.
  std::uint64_t start(const LockRequest& request, Place place, TimePoint deadline, Handler done);
  // The answer is not wanted any more. True: the request was not sent. An id of 0 is ignored.
  bool withdraw(std::uint64_t id) { return id == 0 || topology_.withdraw(id, Line::acknowledged); }

 private:
  struct Granted;
  [[nodiscard]] static Result<AcquireAnswer> read(Node* node, const Result<Reply>& reply);
  void wait_for_replicas(Node& node, std::shared_ptr<Granted> granted);
  void take_back(std::shared_ptr<Granted> granted, Failure why);

  Topology& topology_;
  const std::string client_;
};

// The grant that an answer reports. sent: when the request was sent, from which the lease counts.
[[nodiscard]] Grant grant_of(const LockRequest& request, const AcquireAnswer& answer, TimePoint sent);

}  // namespace dlock::redis
