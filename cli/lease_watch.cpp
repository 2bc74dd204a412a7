#include "cli/lease_watch.hpp"

#include <algorithm>

namespace dlock::cli {

namespace {

constexpr std::chrono::nanoseconds shortest_pause = std::chrono::milliseconds(1);

}  // namespace

LeaseWatch::LeaseWatch(std::chrono::nanoseconds grace, TimePoint now, TimePoint valid_until) noexcept
    : grace_(std::max(grace, std::chrono::nanoseconds::zero())), notice_(grace_) {
  if (valid_until != TimePoint::max()) {
    const auto lease = std::max(valid_until - now, std::chrono::nanoseconds::zero());
    notice_ = std::min(notice_, lease / 3);
  }
}

LeaseWatch::Step LeaseWatch::step(TimePoint now, TimePoint valid_until, bool lost) noexcept {
  switch (state_) {
    case State::running: {
      if (lost || now >= valid_until) return begin_end(now, valid_until);
      if (valid_until == TimePoint::max()) return {Action::none, TimePoint::max(), TimePoint::max()};
      const TimePoint warn_at = saturating_add(valid_until, -notice_);
      if (now >= warn_at) return begin_end(now, valid_until);
      const TimePoint half_way = now + std::max((valid_until - now) / 2, shortest_pause);
      return {Action::none, std::min(warn_at, half_way), valid_until};
    }
    case State::terminating:
      if (now >= kill_at_) return kill(now);
      return {Action::none, kill_at_, kill_at_};
    case State::killed:
      break;
  }
  return {Action::none, TimePoint::max(), kill_at_};
}

LeaseWatch::Step LeaseWatch::begin_end(TimePoint now, TimePoint valid_until) noexcept {
  kill_at_ = std::min(saturating_add(now, grace_), valid_until);
  if (now >= kill_at_) return kill(now);
  state_ = State::terminating;
  return {Action::terminate, kill_at_, kill_at_};
}

LeaseWatch::Step LeaseWatch::kill(TimePoint now) noexcept {
  state_ = State::killed;
  kill_at_ = std::min(kill_at_, now);
  return {Action::kill, TimePoint::max(), kill_at_};
}

}  // namespace dlock::cli
