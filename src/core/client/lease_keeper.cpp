#include "core/client/lease_keeper.hpp"

#include <algorithm>

#include <dlock/duration.hpp>
#include <dlock/spi/backend.hpp>

#include "util/splitmix.hpp"

namespace dlock::detail {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

constexpr nanoseconds shortest_pause = milliseconds(1);
// Longer than an event loop may be left alone between callers that run it in turn (engine::LeadPolicy::longest_gap).
constexpr nanoseconds shortest_lead = milliseconds(1);

}  // namespace

LeaseKeeper::LeaseKeeper(Terms terms, TimePoint granted, TimePoint valid_until, std::uint64_t random) noexcept
    : terms_(terms), valid_until_(valid_until), random_(random) {
  plan_renewal(granted);
}

LeaseKeeper::Step LeaseKeeper::start() const noexcept {
  const TimePoint wake = std::min(next_renewal_, loss_time());
  return {Action::none, wake == TimePoint::max() ? std::nullopt : std::optional(wake)};
}

LeaseKeeper::Step LeaseKeeper::due(TimePoint now) noexcept {
  if (lost_) return {};
  if (now >= loss_time()) {
    lost_ = true;
    return {Action::lose, std::nullopt};
  }
  if (!renewing_ && now >= next_renewal_) {
    renewing_ = true;
    next_renewal_ = TimePoint::max();
    return {Action::renew, wake_at_next(now).wake};
  }
  return wake_at_next(now);
}

LeaseKeeper::Step LeaseKeeper::renewed(TimePoint now, TimePoint valid_until) noexcept {
  renewing_ = false;
  if (lost_ || now >= loss_time()) return due(now);  // too late: a renewal never revives a lease
  valid_until_ = std::max(valid_until_, valid_until);
  plan_renewal(now);
  return wake_at_next(now);
}

LeaseKeeper::Step LeaseKeeper::renewal_failed(TimePoint now, Retry retry) noexcept {
  renewing_ = false;
  if (lost_ || now >= loss_time()) return due(now);
  // Soon: a twelfth of the lease, but at least eight more tries in what is left, and no busy loop. Seldom: a sixth,
  // which is four more tries at most, as the first comes after a third.
  const nanoseconds left = loss_time() - now;
  const nanoseconds soon = std::min(terms_.lease / 12, left / 8);
  const nanoseconds pause = std::max(retry == Retry::soon ? soon : terms_.lease / 6, shortest_pause);
  next_renewal_ = saturating_add(now, jittered(pause));
  return wake_at_next(now);
}

LeaseKeeper::Step LeaseKeeper::extended(TimePoint now, TimePoint valid_until) noexcept {
  if (lost_ || now >= loss_time()) return due(now);
  valid_until_ = std::max(valid_until_, valid_until);
  return wake_at_next(now);
}

LeaseKeeper::Step LeaseKeeper::reconnected(TimePoint now) noexcept {
  if (lost_ || now >= loss_time()) return due(now);
  if (terms_.renew && !renewing_) {
    // Not all the leases of all the clients at once.
    const nanoseconds spread = terms_.lease / 50;
    const auto pause = nanoseconds(util::splitmix(random_) % (static_cast<std::uint64_t>(spread.count()) + 1));
    next_renewal_ = std::min(next_renewal_, saturating_add(now, pause));
  }
  return wake_at_next(now);
}

TimePoint LeaseKeeper::loss_time() const noexcept {
  if (valid_until_ == TimePoint::max()) return valid_until_;
  const nanoseconds lead = std::clamp<nanoseconds>(terms_.lease / 20, shortest_lead, longest_loss_lead);
  return saturating_add(valid_until_, -std::min(lead, terms_.lease / 4));
}

LeaseKeeper::Step LeaseKeeper::wake_at_next(TimePoint now) noexcept {
  const TimePoint wake = std::min(next_renewal_, loss_time());
  if (wake == TimePoint::max()) return {};
  return {Action::none, std::max(wake, now)};
}

void LeaseKeeper::plan_renewal(TimePoint from) noexcept {
  if (!terms_.renew || from >= loss_time()) return;
  // The lease counts from when it was asked for; if the answer took long, a third of it may be more than is left.
  const nanoseconds left = loss_time() - from;
  const nanoseconds pause = std::max(std::min(terms_.lease / 3, left / 2), shortest_pause);
  next_renewal_ = saturating_add(from, jittered(pause));
}

// 0.9 .. 1.1 of it.
nanoseconds LeaseKeeper::jittered(nanoseconds d) noexcept {
  const auto permille = static_cast<nanoseconds::rep>(900 + util::splitmix(random_) % 201);
  return d / 1000 * permille;
}

}  // namespace dlock::detail
