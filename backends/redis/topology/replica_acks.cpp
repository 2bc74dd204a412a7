#include "backends/redis/topology/replica_acks.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "backends/redis/connection/server_info.hpp"

namespace dlock::redis {

using std::chrono::nanoseconds;

namespace {

constexpr std::chrono::seconds longest_patience{1};

}  // namespace

void ReplicaAcks::count(std::uint64_t wanted, nanoseconds patience, TimePoint deadline, Handler done) {
  patience = std::min<nanoseconds>({patience, connection_.options().response_timeout / 3, longest_patience});
  const TimePoint until = std::min(saturating_add(connection_.executor().now(), patience), deadline);
  writes_.push_back({connection_.connection_number(), wanted, until, deadline, std::move(done)});
  schedule();
}

// WAIT is sent in a task of its own: writes whose answers have arrived together share it, and a request that undoes a
// write goes before it.
void ReplicaAcks::schedule() {
  if (writes_.empty()) return timer_.disarm();
  const auto first = std::min_element(writes_.begin(), writes_.end(),
                                      [](const Write& a, const Write& b) { return a.deadline < b.deadline; });
  timer_.arm(first->deadline, [this, life = lifetime_.watch()] {
    answer([now = connection_.executor().now()](const Write& each) { return each.deadline <= now; },
           failure("the replicas did not answer in time"));
    if (!life.over()) schedule();
  });
  if (in_flight_ || std::exchange(scheduled_, true)) return;
  connection_.executor().post(lifetime_.guard([this] { send(); }));
}

void ReplicaAcks::send() {
  scheduled_ = false;
  const auto life = lifetime_.watch();
  const std::uint64_t now_at = connection_.connection_number();
  answer([&](const Write& each) { return each.connection != now_at; },
         failure("the connection broke before the replicas answered"));
  if (life.over() || in_flight_ || writes_.empty()) return;
  in_flight_ = true;
  std::uint64_t wanted = 0;
  wait_until_ = TimePoint::max();
  for (Write& each : writes_) {
    each.covered = true;
    wanted = std::max(wanted, each.wanted);
    wait_until_ = std::min(wait_until_, each.until);
  }
  (void)connection_.request(
      {"WAIT", std::to_string(wanted), in_milliseconds(wait_until_ - connection_.executor().now())}, TimePoint::max(),
      [this](const Result<Reply>& reply, TimePoint) { counted(reply); });
}

// A write that may wait longer takes part in the next WAIT: this one ended with the shortest patience.
void ReplicaAcks::counted(const Result<Reply>& reply) {
  in_flight_ = false;
  const Result<std::uint64_t> replicas = reply.ok() ? read_number(reply.value()) : reply.failure();
  const auto life = lifetime_.watch();
  answer(
      [&](Write& each) {
        return std::exchange(each.covered, false) &&
               (!replicas.ok() || replicas.value() >= each.wanted || each.until <= wait_until_);
      },
      replicas);
  if (!life.over()) schedule();
}

template <class Which>
void ReplicaAcks::answer(Which&& which, const Result<std::uint64_t>& replicas) {
  std::vector<Write> rest;
  std::vector<Write> answered;
  for (Write& each : writes_) (which(each) ? answered : rest).push_back(std::move(each));
  writes_ = std::move(rest);
  for (const Write& each : answered) each.done(replicas);  // which may destroy this
}

Failure ReplicaAcks::failure(const std::string& why) const {
  return {errc::ambiguous, connection_.options().endpoint() + ": " + why};
}

}  // namespace dlock::redis
