#include "core/client/renewal_schedule.hpp"

#include <algorithm>

#include <dlock/duration.hpp>
#include <dlock/spi/backend.hpp>

#include "util/splitmix.hpp"

namespace dlock::detail {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

constexpr nanoseconds shortest_pause = milliseconds(1);
// Longer than an event loop may be without a leader (engine::LeadPolicy::longest_gap).
constexpr nanoseconds shortest_lead = microseconds(1500);

}  // namespace

RenewalSchedule::RenewalSchedule(nanoseconds lease, bool renew, TimePoint granted, TimePoint valid_until,
                                 std::uint64_t random) noexcept
    : lease_(lease), renew_(renew), random_(random) {
  plan_renewal(granted, valid_until);
}

RenewalSchedule::Step RenewalSchedule::due(TimePoint now, TimePoint valid_until) noexcept {
  if (now >= loss_time(valid_until)) return {.action = Action::lose};
  Action action = Action::none;
  if (!renewing_ && now >= next_renewal_) {
    action = Action::renew;
    renewing_ = true;
    next_renewal_ = TimePoint::max();
  }
  return {.action = action, .wake = wake_at_next(now, valid_until).wake};
}

RenewalSchedule::Step RenewalSchedule::renewed(TimePoint now, TimePoint valid_until, TimePoint renewed_until) noexcept {
  renewing_ = false;
  if (now >= loss_time(valid_until)) return {.action = Action::lose};
  const TimePoint end = std::max(valid_until, renewed_until);
  plan_renewal(now, end);
  return {.wake = wake_at_next(now, end).wake, .valid_until = end};
}

RenewalSchedule::Step RenewalSchedule::renewal_failed(TimePoint now, TimePoint valid_until, Retry retry) noexcept {
  renewing_ = false;
  if (now >= loss_time(valid_until)) return {.action = Action::lose};
  // Soon: a twelfth of the lease, but at least eight more tries in what is left, and no busy loop. Seldom: a sixth,
  // which is four more tries at most, as the first comes after a third.
  const nanoseconds left = loss_time(valid_until) - now;
  const nanoseconds soon = std::min(lease_ / 12, left / 8);
  const nanoseconds pause = std::max(retry == Retry::soon ? soon : lease_ / 6, shortest_pause);
  next_renewal_ = saturating_add(now, jittered(pause));
  return wake_at_next(now, valid_until);
}

RenewalSchedule::Step RenewalSchedule::extended(TimePoint now, TimePoint valid_until,
                                                TimePoint extended_until) const noexcept {
  if (now >= loss_time(valid_until)) return {.action = Action::lose};
  const TimePoint end = std::max(valid_until, extended_until);
  return {.wake = wake_at_next(now, end).wake, .valid_until = end};
}

RenewalSchedule::Step RenewalSchedule::reconnected(TimePoint now, TimePoint valid_until) noexcept {
  if (now >= loss_time(valid_until)) return {.action = Action::lose};
  if (renew_ && !renewing_) {
    // Spreads the renewals of all leases and clients.
    const nanoseconds spread = lease_ / 50;
    const auto pause = nanoseconds(util::splitmix(random_) % (static_cast<std::uint64_t>(spread.count()) + 1));
    next_renewal_ = std::min(next_renewal_, saturating_add(now, pause));
  }
  return wake_at_next(now, valid_until);
}

TimePoint RenewalSchedule::loss_time(TimePoint valid_until) const noexcept {
  if (valid_until == TimePoint::max()) return valid_until;
  const nanoseconds lead = std::clamp<nanoseconds>(lease_ / 20, shortest_lead, longest_loss_lead);
  return saturating_add(valid_until, -std::min(lead, lease_ / 4));
}

RenewalSchedule::Step RenewalSchedule::wake_at_next(TimePoint now, TimePoint valid_until) const noexcept {
  const TimePoint wake = std::min(next_renewal_, loss_time(valid_until));
  if (wake == TimePoint::max()) return {};
  return {.wake = std::max(wake, now)};
}

void RenewalSchedule::plan_renewal(TimePoint from, TimePoint valid_until) noexcept {
  const TimePoint end = loss_time(valid_until);
  if (!renew_ || from >= end) return;
  // The lease counts from the request; if the answer took long, a third of it may be more than is left.
  const nanoseconds pause = std::max(std::min(lease_ / 3, (end - from) / 2), shortest_pause);
  next_renewal_ = saturating_add(from, jittered(pause));
}

// From 0.9 d to 1.1 d, at random.
nanoseconds RenewalSchedule::jittered(nanoseconds d) noexcept {
  const auto permille = static_cast<nanoseconds::rep>(900 + util::splitmix(random_) % 201);
  return d / 1000 * permille;
}

}  // namespace dlock::detail
