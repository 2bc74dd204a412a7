#include <dlock/multi_lease.hpp>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>
#include <ranges>
#include <tuple>
#include <utility>

#include <dlock/error.hpp>

#include "core/api/multi_lease_state.hpp"
#include "core/client/blocking.hpp"
#include "util/mutex.hpp"
#include "util/names.hpp"

namespace dlock {

namespace detail {

// --- Locks -----------------------------------------------------------------------------------------------------------

LockPlaces::LockPlaces(std::vector<LockPlace> as_named) : places(std::move(as_named)), order(places.size()) {
  if (places.empty()) throw Error(errc::invalid_argument, "a MultiLock needs the name of at least one lock");
  std::vector<std::string> endpoints;
  for (const LockPlace& place : places) {
    names.push_back(place.name);
    endpoints.push_back(place.core->context().endpoint());
  }
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto key = [&](std::size_t i) { return std::tie(names[i], endpoints[i]); };
  std::ranges::sort(order, {}, key);
  if (const auto twice = std::ranges::adjacent_find(order, {}, key); twice != order.end()) {
    throw Error(errc::invalid_argument, "lock " + util::quoted(names[*twice]) + " is named twice");
  }
}

Failure naming(const std::string& lock, Failure failure) {
  const std::string quoted = "\"" + lock + "\"";
  if (failure.detail.find(quoted) == std::string::npos) {
    failure.detail = "lock " + quoted + (failure.detail.empty() ? "" : ": " + failure.detail);
  }
  return failure;
}

// --- State -----------------------------------------------------------------------------------------------------------

MultiLeaseState::MultiLeaseState(std::shared_ptr<const LockPlaces> locks)
    : locks_(std::move(locks)), leases_(locks_->places.size()), begun_(leases_.size()) {}

void MultiLeaseState::put(std::size_t i, Lease lease) {
  leases_[i] = std::move(lease);
  LeaseRecord::of(leases_[i])->join(lost_);
}

bool MultiLeaseState::held() const noexcept {
  return std::ranges::all_of(leases_, &Lease::held);
}

std::stop_token MultiLeaseState::look_for_loss() const {
  for (const Lease& lease : leases_) (void)lease.lost();
  return lost_.get_token();
}

bool MultiLeaseState::must_not_block() const noexcept {
  return std::ranges::any_of(locks_->places,
                             [](const LockPlace& place) { return place.core->context().engine->must_not_block(); });
}

bool MultiLeaseState::mark_released() noexcept {
  if (released_.exchange(true)) return false;
  ended_.request_stop();
  return true;
}

bool MultiLeaseState::begin_release(bool may_wait_for_turn) noexcept {
  if (!mark_released()) return false;
  for (const std::size_t i : std::views::reverse(locks_->order)) {
    const auto& lease = LeaseRecord::of(leases_[i]);
    if (!lease) continue;
    begun_[i] =
        LeaseRecord::release_and_tell(lease, may_wait_for_turn ? lease->core().if_busy() : engine::IfBusy::leave_task);
  }
  return true;
}

// --- Waiting for releases --------------------------------------------------------------------------------------------

// Waits, one after the other, for releases that were begun at the same time.
class MultiLeaseState::WaitInAll {
 public:
  // False: the release did not end within `limit` of the first wait.
  bool wait(LeaseRecord& lease, std::chrono::nanoseconds limit) {
    util::Event& event = lease.release_ended();
    if (event.is_set()) return true;
    const auto now = Clock::now();
    if (!start_) start_ = now;
    // Timeouts count, too: an engine that is driven by hand has its own time.
    const std::chrono::nanoseconds passed = std::max<std::chrono::nanoseconds>(now - *start_, in_vain_);
    const auto left = std::max(limit - passed, std::chrono::nanoseconds::zero());
    if (lease.core().context().engine->wait(event, left)) return true;
    in_vain_ = std::max(in_vain_, limit);
    return false;
  }

 private:
  using Clock = std::chrono::steady_clock;  // engines wait in real time
  std::optional<Clock::time_point> start_;
  std::chrono::nanoseconds in_vain_{0};
};

Failure MultiLeaseState::await_release(bool& ours, Limit limit) {
  WaitInAll all;
  Failure first;
  ours = true;
  for (const std::size_t i : std::views::reverse(locks_->order)) {
    Failure failure;
    bool was_ours = false;
    if (begun_[i]) {  // else it was lost, or has been released already
      LeaseRecord& lease = *LeaseRecord::of(leases_[i]);
      if (all.wait(lease, limit(lease.core().context()))) {
        failure = lease.release_failure();
        was_ours = lease.was_ours();
      } else {
        failure = {errc::unavailable, "the release of lock \"" + lease.name() + "\" was not confirmed in time"};
      }
    }
    ours = ours && was_ours;
    if (failure.code && !first.code) first = naming(locks_->names[i], std::move(failure));
  }
  return first;
}

void MultiLeaseState::let_go() noexcept {
  if (!begin_release(true) || must_not_block()) return;
  bool ours = false;  // no caller is left to receive it
  (void)await_release(ours, [](const ClientContext& context) noexcept { return context.close_timeout; });
}

// --- Releases without waiting ----------------------------------------------------------------------------------------

// Gathers the answers: one part for each lease, and one for the call, so that all releases are begun before the end.
class MultiLeaseState::Ending {
 public:
  Ending(std::size_t parts, Completion<bool> handler) : left_(parts), handler_(std::move(handler)) {}

  // The last part runs the handler, by this client.
  void end_part(const ClientCore& core, Failure failure, bool was_ours) {
    Failure first;
    bool ours = false;
    {
      const util::MutexLock lock(mutex_);
      if (failure.code && !failure_.code) failure_ = std::move(failure);
      ours_ = ours_ && was_ours;
      if (--left_ > 0) return;
      first = std::move(failure_);
      ours = ours_;
    }
    core.notifier().complete([handler = std::move(handler_), first = std::move(first), ours] { handler(first, ours); });
  }

 private:
  util::Mutex mutex_;
  std::size_t left_ DLOCK_GUARDED_BY(mutex_);
  Failure failure_ DLOCK_GUARDED_BY(mutex_);
  bool ours_ DLOCK_GUARDED_BY(mutex_) = true;
  // Moved, never copied: its captures must be destroyed where it runs, not inside a task.
  Completion<bool> handler_;
};

void MultiLeaseState::release_and_call(Completion<bool> handler) {
  const auto ending = std::make_shared<Ending>(leases_.size() + 1, std::move(handler));
  const ClientCore& first = *locks_->places.front().core;
  if (!mark_released()) {
    for (std::size_t i = 0; i <= leases_.size(); ++i) ending->end_part(first, {}, false);
    return;
  }
  for (const std::size_t i : std::views::reverse(locks_->order)) {
    const auto& lease = LeaseRecord::of(leases_[i]);
    ReleaseCompletion end = [&lease = *lease, ending](Failure failure, bool was_ours) {
      if (failure.code) failure = naming(lease.name(), std::move(failure));
      ending->end_part(lease.core(), std::move(failure), was_ours);
    };
    if (!LeaseRecord::release(lease, end, engine::IfBusy::leave_task)) ending->end_part(first, {}, false);
  }
  ending->end_part(first, {}, true);
}

void MultiLeaseState::release_in_background() noexcept {
  if (!mark_released()) return;
  for (const std::size_t i : std::views::reverse(locks_->order)) {
    LeaseRecord::release_in_background(LeaseRecord::of(leases_[i]));
  }
}

}  // namespace detail

// --- MultiLease ------------------------------------------------------------------------------------------------------

MultiLease::MultiLease() noexcept = default;
MultiLease::MultiLease(std::shared_ptr<detail::MultiLeaseState> state) noexcept : state_(std::move(state)) {}
MultiLease::MultiLease(MultiLease&& other) noexcept = default;

MultiLease& MultiLease::operator=(MultiLease&& other) noexcept {
  if (this != &other) MultiLease old(std::exchange(state_, std::exchange(other.state_, nullptr)));
  return *this;
}

MultiLease::~MultiLease() {
  if (state_) state_->let_go();
}

bool MultiLease::held() const noexcept {
  return state_ && state_->held();
}

TimePoint MultiLease::valid_until() const noexcept {
  if (!state_) return TimePoint::min();
  return std::ranges::min(state_->leases() | std::views::transform(&Lease::valid_until));
}

std::chrono::nanoseconds MultiLease::remaining() const noexcept {
  if (!state_) return std::chrono::nanoseconds::zero();
  return std::ranges::min(state_->leases() | std::views::transform(&Lease::remaining));
}

std::stop_token MultiLease::lost() const {
  const auto state = state_;  // a callback may destroy this lease
  return state ? state->look_for_loss() : std::stop_token();
}

std::stop_token MultiLease::ended() const {
  const auto state = state_;
  if (!state) return {};
  (void)state->look_for_loss();
  return state->ended_token();
}

bool MultiLease::release() {
  const auto state = state_;  // a handler may destroy this lease
  if (!state) return false;
  if (state->must_not_block() && std::ranges::any_of(state->leases(), &Lease::held)) {
    throw Error(detail::would_deadlock());
  }
  if (!state->begin_release(true)) return false;
  bool ours = false;
  if (const Failure failure = state->await_release(ours, detail::response_limit); failure.code) throw Error(failure);
  return ours;
}

bool MultiLease::release(std::error_code& ec) noexcept {
  return detail::value_or_code([this] { return release(); }, ec);
}

void MultiLease::release_in_background() noexcept {
  const auto state = state_;
  if (state) state->release_in_background();
}

void MultiLease::start_release(detail::Completion<bool> handler) {
  const auto state = state_;
  if (!state) {
    handler({}, false);
    return;
  }
  state->release_and_call(std::move(handler));
}

std::size_t MultiLease::size() const noexcept {
  return state_ ? state_->leases().size() : 0;
}

const Lease& MultiLease::operator[](std::size_t i) const noexcept {
  return state_->leases()[i];
}

}  // namespace dlock
