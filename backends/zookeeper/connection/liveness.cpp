#include "backends/zookeeper/connection/liveness.hpp"

#include <algorithm>

namespace dlock::zookeeper {

namespace {

// Of the acknowledged writes in the last quarter of a timeout.
constexpr int most_remembered = 16;

}  // namespace

void Liveness::begin(TimePoint requested, TimePoint now, std::chrono::milliseconds timeout) {
  *this = {};
  timeout_ = timeout;
  last_sent_ = requested;
  valid_until_ = lease_valid_until(requested, timeout);
  // A new session gets the time for its first heartbeat.
  expires_at_ = std::max(valid_until_, saturating_add(lease_valid_until(now, timeout), -unknown_to_leader()));
}

void Liveness::acknowledged(TimePoint sent, TimePoint now) {
  if (is_over(now)) return;
  while (!unsafe_.empty() && saturating_add(unsafe_.front(), unknown_to_leader()) <= sent) {
    valid_until_ = std::max(valid_until_, lease_valid_until(unsafe_.front(), timeout_));
    unsafe_.pop_front();
  }
  expires_at_ = std::max(expires_at_, valid_until_);
  if (sent <= last_sent_) return;
  last_sent_ = sent;
  if (unsafe_.empty() || saturating_add(unsafe_.back(), unknown_to_leader() / most_remembered) <= sent) {
    unsafe_.push_back(sent);
  }
}

}  // namespace dlock::zookeeper
