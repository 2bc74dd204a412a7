#include "backends/redis/topology/replica_acks.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "backends/redis/connection/server_info.hpp"

namespace dlock::redis {

void ReplicaAcks::count(std::uint64_t wanted, std::chrono::nanoseconds patience, TimePoint deadline, Handler done) {
  next_.push_back({wanted, patience, deadline, std::move(done)});
  if (!in_flight_) send();
}

void ReplicaAcks::send() {
  in_flight_ = true;
  auto writes = std::exchange(next_, {});
  std::uint64_t wanted = 0;
  auto patience = std::chrono::nanoseconds::max();
  TimePoint deadline = TimePoint::max();
  for (const Write& each : writes) {
    wanted = std::max(wanted, each.wanted);
    patience = std::min(patience, each.patience);
    deadline = std::min(deadline, each.deadline);
  }
  (void)connection_.request(
      {"WAIT", std::to_string(wanted), in_milliseconds(patience)}, deadline,
      [this, writes = std::move(writes)](const Result<Reply>& reply, TimePoint) { counted(writes, reply); });
}

void ReplicaAcks::counted(const std::vector<Write>& writes, const Result<Reply>& reply) {
  const Result<std::uint64_t> replicas = reply.ok() ? read_number(reply.value()) : reply.failure();
  in_flight_ = false;
  // After a failure the next WAIT may go over another connection, which knows nothing of the writes before.
  const auto may_wait = [&](const Write& each) {
    return replicas.ok() && connection_.executor().now() < each.deadline;
  };
  auto left = std::exchange(next_, {});
  const auto given_up = std::stable_partition(left.begin(), left.end(), may_wait);
  next_.assign(std::move_iterator(left.begin()), std::move_iterator(given_up));
  if (!next_.empty()) send();
  const Failure late{errc::ambiguous, connection_.options().endpoint() + ": the replicas did not answer in time"};
  for (const Write& each : writes) each.done(replicas);
  for (auto each = given_up; each != left.end(); ++each) each->done(replicas.ok() ? late : replicas.failure());
}

}  // namespace dlock::redis
