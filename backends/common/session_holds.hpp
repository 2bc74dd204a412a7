// The locks that a client holds in a session: they last as long as the session, and are watched in case another client
// removes them from the service.
#pragma once

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include <dlock/spi/backend.hpp>

#include "backends/common/for_each_still_in.hpp"
#include "util/names.hpp"

namespace dlock::common {

// Own: identifies a lock in the service, as a key or a node does. Interest: a watch of that. In tasks only.
template <class Own, class Interest>
class SessionHolds {
 public:
  SessionHolds(const SessionHolds&) = delete;
  SessionHolds& operator=(const SessionHolds&) = delete;

  // Takes a lock that is to be released: nothing more is reported about it. nullopt: it was lost.
  [[nodiscard]] std::optional<Own> take(const OwnerId& owner) {
    auto hold = holds_.extract(owner);
    return hold ? std::optional(std::move(hold.mapped().own)) : std::nullopt;
  }
  [[nodiscard]] bool contains(const OwnerId& owner) const { return holds_.contains(owner); }
  [[nodiscard]] bool empty() const noexcept { return holds_.empty(); }

  // The session is safe until then. step: a smaller extension is not reported; there may be thousands of locks.
  void session_alive(TimePoint valid_until, std::chrono::nanoseconds step = {}) {
    if (valid_until < saturating_add(told_, step)) return;
    told_ = valid_until;
    const TimePoint now = host_.executor().now();
    for_each_still_in(holds_, [&](const OwnerId& owner, Hold& hold) {  // the host may release one inside the call
      TimePoint& end = hold.grant.valid_until;
      if (may_be_over(end, now)) {  // its holder may have been notified already
        lose(owner, service_ + " did not answer before the lease of " + called(hold) + " expired");
      } else {
        end = std::max(end, valid_until);
        host_.extended(owner, end);
      }
    });
  }

  void session_lost(const Failure& why) {
    told_ = TimePoint::min();
    due_.clear();
    timer_.disarm();
    for (auto& [owner, hold] : std::exchange(holds_, {})) {
      remove(owner, std::move(hold.own));
      host_.lost(owner, {errc::lost, "the session that held " + called(hold) + " is lost: " + why.detail});
    }
  }

 protected:
  struct Hold {
    Grant grant;
    Own own;
    std::unique_ptr<Interest> watch = nullptr;
  };

  SessionHolds(BackendHost& host, std::string service)
      : host_(host), service_(std::move(service)), timer_(host.executor()) {}
  ~SessionHolds() = default;

  // It is time to check whether the lock is still in the service.
  virtual void look(const OwnerId& owner, Hold& hold) = 0;
  // The lock is lost, and no owner is left to release it: removes it from the service.
  virtual void remove(const OwnerId& owner, Own own) = 0;

  [[nodiscard]] static std::string called(const Hold& hold) {
    return std::string(to_string(hold.grant.kind)) + " " + util::quoted(hold.grant.name);
  }
  [[nodiscard]] Hold* find(const OwnerId& owner) {
    const auto found = holds_.find(owner);
    return found == holds_.end() ? nullptr : &found->second;
  }
  Hold& add(const Grant& grant, Own own) {
    return holds_.insert_or_assign(grant.owner, Hold{grant, std::move(own)}).first->second;
  }
  void look_later(const OwnerId& owner, std::chrono::nanoseconds pause) {
    const Due due{saturating_add(host_.executor().now(), pause), owner};
    due_.insert(std::upper_bound(due_.begin(), due_.end(), due, [](const Due& a, const Due& b) { return a.at < b.at; }),
                due);
    if (!timer_.armed() || due_.front().owner == owner) timer_.arm(due_.front().at, [this] { look_at_due(); });
  }
  void lose(const OwnerId& owner, std::string why) {
    if (auto own = take(owner)) remove(owner, *std::move(own));
    host_.lost(owner, {errc::lost, std::move(why)});
  }

  BackendHost& host_;
  std::unordered_map<OwnerId, Hold> holds_;

 private:
  struct Due {
    TimePoint at;
    OwnerId owner;
  };

  void look_at_due() {
    const TimePoint now = host_.executor().now();
    while (!due_.empty() && due_.front().at <= now) {
      const OwnerId owner = due_.front().owner;
      due_.pop_front();
      if (Hold* const hold = find(owner)) look(owner, *hold);
    }
    // Most of those that are due later are released by then.
    while (!due_.empty() && !contains(due_.front().owner)) due_.pop_front();
    if (!due_.empty()) timer_.arm(due_.front().at, [this] { look_at_due(); });
  }

  const std::string service_;
  TimePoint told_ = TimePoint::min();
  std::deque<Due> due_;  // the first one first
  Timer timer_;
};

}  // namespace dlock::common
