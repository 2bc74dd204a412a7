#include "backends/common/reconnect.hpp"

#include <algorithm>
#include <utility>

#include <dlock/duration.hpp>

namespace dlock::common {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

// A caller that needs the connection ends a long pause early, but attempts stay this far apart.
constexpr nanoseconds between_attempts = milliseconds(50);
constexpr nanoseconds longest_after_refusals = std::chrono::seconds(10);
// The pause is random up to this, because all clients of a server lose their connections at the same moment.
constexpr nanoseconds shortest_pause = milliseconds(10);

}  // namespace

bool is_final_refusal(const Failure& why) noexcept {
  return why.code != errc::unavailable && why.code != errc::ambiguous;
}

Failure combined(const std::vector<Failure>& failures) {
  Failure all{errc::unavailable, ""};
  if (std::ranges::all_of(failures, is_final_refusal)) all.code = failures.front().code;
  for (const Failure& each : failures) {
    if (all.detail.find(each.detail) != std::string::npos) continue;  // another address of that host
    all.detail += (all.detail.empty() ? "" : "; ") + each.detail;
  }
  return all;
}

Reconnect::Reconnect(Executor& executor, Rules rules, std::function<void()> connect)
    : executor_(executor),
      rules_(rules),
      connect_(std::move(connect)),
      backoff_(rules.longest_pause),
      refused_(longest_after_refusals),
      timer_(executor) {}

void Reconnect::want() {
  if (state_ == State::idle) return connect();
  if (state_ != State::pausing) return;
  const TimePoint soon = std::max(executor_.now(), saturating_add(last_attempt_, between_attempts));
  if (soon < next_attempt_) pause_until(soon);
}

void Reconnect::connect() {
  state_ = State::connecting;
  last_attempt_ = executor_.now();
  connect_();
}

void Reconnect::pause_until(TimePoint at) {
  state_ = State::pausing;
  next_attempt_ = at;
  if (at == TimePoint::max()) return timer_.disarm();
  timer_.arm(at, [this] { connect(); });
}

void Reconnect::ready() {
  state_ = State::ready;
  ready_since_ = executor_.now();
  answered_ = proven_ = false;
}

void Reconnect::answered() noexcept {
  if (state_ == State::ready && !std::exchange(answered_, true)) problem_ = {};
}

void Reconnect::proven() noexcept {
  answered();
  proven_ = answered_;
}

bool Reconnect::is_good() const {
  if (state_ != State::ready || !answered_) return false;
  return proven_ || executor_.now() >= saturating_add(ready_since_, rules_.lasting);
}

void Reconnect::down(const Failure& why) {
  const TimePoint now = executor_.now();
  if (is_good()) {
    backoff_.reset();
    refused_.reset();
    return down_until(why, saturating_add(now, random_between(nanoseconds(0), shortest_pause, executor_)));
  }
  if (!is_final_refusal(why) || state_ == State::ready) {
    return down_until(why, saturating_add(now, backoff_.next(executor_)));
  }
  down_until(why, rules_.insists ? saturating_add(now, refused_.next(executor_)) : TimePoint::max());
}

void Reconnect::down_until(const Failure& why, TimePoint at) {
  const bool hung_up = state_ == State::ready && !answered_;
  if (!hung_up || !problem_.code || !is_final_refusal(problem_) || is_final_refusal(why)) problem_ = why;
  answered_ = false;
  pause_until(at);
}

void Reconnect::rest() {
  if (state_ == State::over) return;
  if (is_good()) backoff_.reset();
  state_ = State::idle;
  timer_.disarm();
}

void Reconnect::stop() {
  state_ = State::over;
  timer_.disarm();
}

}  // namespace dlock::common
