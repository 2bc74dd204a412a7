#include "core/client/lease_record.hpp"

#include <algorithm>
#include <utility>

#include "core/client/client_core.hpp"

namespace dlock::detail {

LeaseRecord::LeaseRecord(std::shared_ptr<ClientCore> core, Grant grant)
    : core_(std::move(core)),
      grant_(std::move(grant)),
      granted_at_(core_->context().clock->now()),
      valid_until_(grant_.valid_until) {}

LeaseRecord::~LeaseRecord() = default;

bool LeaseRecord::held() noexcept {
  if (phase() != Phase::held || foreign_process()) return false;
  if (!expired()) return true;
  (void)mark_lost();
  return false;
}

std::chrono::nanoseconds LeaseRecord::remaining() noexcept {
  if (!held()) return std::chrono::nanoseconds::zero();
  const TimePoint end = valid_until();
  if (end == TimePoint::max()) return std::chrono::nanoseconds::max();
  return std::max(end - core_->context().clock->now(), std::chrono::nanoseconds::zero());
}

bool LeaseRecord::expired() const noexcept {
  return core_->context().clock->now() >= valid_until();
}

bool LeaseRecord::foreign_process() const noexcept {
  return core_->context().foreign_process();
}

// If a loss and a join() happen at the same time, the later of the two checks sees both.
void LeaseRecord::fire_lost() noexcept {
  if (phase_.load() != Phase::lost) return;
  lost_.fire();
  ended_.fire();
  if (joined_.load()) signal_of_all_.request_stop();
}

void LeaseRecord::look_for_loss() noexcept {
  if (expired() && !foreign_process()) (void)mark_lost();
  fire_lost();  // the engine may not have come to it yet
}

void LeaseRecord::join(std::stop_source signal_of_all) {
  signal_of_all_ = std::move(signal_of_all);
  joined_.store(true);
  fire_lost();
}

void LeaseRecord::release_in_background(const std::shared_ptr<LeaseRecord>& state) noexcept {
  ReleaseCompletion warn = [&state = *state](const Failure& failure, bool /*was_ours*/) {
    if (failure.code) state.core().warn({state.name(), failure});
  };
  (void)release(state, warn, engine::IfBusy::leave_task);
}

bool LeaseRecord::release_and_tell(const std::shared_ptr<LeaseRecord>& state, engine::IfBusy if_busy) noexcept {
  ReleaseCompletion end = [&state = *state](Failure failure, bool was_ours) {
    state.end_release(std::move(failure), was_ours);
  };
  return release(state, end, if_busy);
}

// A copy of the pointer: a stop callback may destroy the lease.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
bool LeaseRecord::release(std::shared_ptr<LeaseRecord> state, ReleaseCompletion& done,
                          engine::IfBusy if_busy) noexcept {
  if (state->foreign_process()) return false;
  if (state->expired()) (void)state->mark_lost();
  const bool ours = state->leave_held(Phase::giving_back);
  if (ours) {
    state->release_done_ = std::move(done);
    state->ended_.fire();  // before another owner can enter
    state->phase_.store(Phase::given_back, std::memory_order_release);
  } else if (state->phase() != Phase::lost) {
    return false;
  }
  state->fire_lost();
  const bool accepted = state->core().engine().dispatch([state] { state->core().leases().give_back(state); }, if_busy);
  if (ours && !accepted) {  // close() made it lost and released it
    state->set_gone();
    state->answer_release({}, false);
  }
  return ours;
}

void LeaseRecord::answer_release(Failure failure, bool was_ours) {
  const auto done = std::move(release_done_);
  if (done) done(std::move(failure), was_ours);
}

void LeaseRecord::end_release(Failure failure, bool was_ours) noexcept {
  release_failure_ = std::move(failure);
  was_ours_ = was_ours;
  release_ended_.set();
}

}  // namespace dlock::detail
