#include "backends/postgres/session_locks/advisory_contention.hpp"

#include <utility>

#include <dlock/duration.hpp>

namespace dlock::postgres {

AdvisoryContention::AdvisoryContention(const Common& common, LockRequest request, LockKey key, GrantSink& sink)
    : common_(common),
      request_(std::move(request)),
      key_(std::move(key)),
      sink_(sink),
      patience_(common.executor, common.response_timeout),
      holder_(common.holders.of(key_)),
      timer_(common.executor) {}

AdvisoryContention::~AdvisoryContention() {
  stop_trying();
  leave_queue();
  if (member_ != nullptr) member_->abandon();
}

// --- Trying ----------------------------------------------------------------------------------------------------------

void AdvisoryContention::ask() {
  if (over_ || member_ != nullptr || try_ != 0 || setting_up_) return;
  timer_.disarm();
  if (holder_.excludes(key_)) return busy();
  try_ = holder_.ask(request_, key_, *this);
}

void AdvisoryContention::stop_trying() {
  timer_.disarm();
  if (try_ != 0) holder_.withdraw(std::exchange(try_, 0));
}

void AdvisoryContention::try_granted(const Grant& grant) {
  try_ = 0;
  granted(grant);
}

void AdvisoryContention::try_busy() {
  try_ = 0;
  was_set_up_ = false;
  busy();
}

void AdvisoryContention::try_failed(Remedy remedy, const Failure& why) {
  try_ = 0;
  failed(remedy, why);
}

void AdvisoryContention::try_delayed(const Failure& why) {
  trouble(why);
}

void AdvisoryContention::busy() {
  backoff_.reset();
  if (!request_.wait) {
    end();
    return sink_.busy();
  }
  if (queueing_) return;
  queueing_ = true;
  const Turns::Place place = common_.room.admit(*this);
  sink_.busy();
  if (place != Turns::Place::no_room) return;
  // For the observer. The last report, when the wait ends, is what is known of the lock.
  sink_.unreachable(common_.room.why_no_connection());
  sink_.busy();
}

void AdvisoryContention::granted(const Grant& grant) {
  end();
  leave_queue();
  // Others of this client who wait for it may share it.
  if (grant.mode == Mode::shared && common_.room.has_queue()) common_.room.freed(key_);
  sink_.granted(grant);
}

void AdvisoryContention::end() {
  over_ = true;
  patience_.over();
}

void AdvisoryContention::leave_queue() {
  queueing_ = false;
  common_.room.leave(*this);
}

// --- Waiting ---------------------------------------------------------------------------------------------------------

void AdvisoryContention::admitted(MemberLock& lock) {
  queueing_ = false;
  stop_trying();  // if that is granted in this moment, it is given back, and this connection gets it
  member_ = &lock;
}

void AdvisoryContention::turn_came() {
  common_.room.give_connection(*this);
}

void AdvisoryContention::worth_a_try() {
  if (!timer_.armed()) ask();
}

bool AdvisoryContention::has_connection() const noexcept {
  return member_ != nullptr && member_->is_kept_waiting();
}

void AdvisoryContention::give_way() {
  queueing_ = true;
  std::exchange(member_, nullptr)->abandon();
}

void AdvisoryContention::member_yielded() {
  queueing_ = true;
  member_ = nullptr;
}

void AdvisoryContention::member_granted(const Grant& grant) {
  member_ = nullptr;
  granted(grant);
}

void AdvisoryContention::member_failed(Remedy remedy, const Failure& why) {
  member_ = nullptr;
  leave_queue();
  failed(remedy, why);
}

// --- Trouble ---------------------------------------------------------------------------------------------------------

void AdvisoryContention::failed(Remedy remedy, const Failure& why) {
  switch (remedy) {
    case Remedy::retry:
      return retry(why);
    case Remedy::busy:  // something else was locked than the lock
    case Remedy::retry_later:
    case Remedy::reconnect:
      if (!request_.wait) return final_failure(why);
      return retry(why);
    case Remedy::set_up:
      if (was_set_up_) return final_failure(why);
      return set_up();
    case Remedy::final:
      return final_failure(why);
  }
}

void AdvisoryContention::final_failure(const Failure& why) {
  end();
  stop_trying();
  leave_queue();
  sink_.failed(why);
}

void AdvisoryContention::retry(const Failure& why) {
  const TimePoint at = saturating_add(common_.executor.now(), backoff_.next(common_.executor));
  if (!request_.wait && at >= patience_.until()) return final_failure(why);
  timer_.arm(at, [this] { ask(); });
  trouble(why);
}

void AdvisoryContention::trouble(const Failure& why) {
  if (request_.wait) return sink_.unreachable(why);
  patience_.note(why, [this](const Failure& last) { final_failure(last); });
}

void AdvisoryContention::set_up() {
  setting_up_ = true;
  common_.set_up(saturating_add(common_.executor.now(), common_.response_timeout),
                 lifetime_.guard([this](const std::optional<Failure>& why_not) {
                   setting_up_ = false;
                   if (over_) return;
                   was_set_up_ = !why_not;
                   if (!why_not) return ask();
                   const bool hopeless = why_not->code != errc::unavailable && why_not->code != errc::ambiguous;
                   failed(hopeless ? Remedy::final : Remedy::reconnect, *why_not);
                 }));
}

}  // namespace dlock::postgres
