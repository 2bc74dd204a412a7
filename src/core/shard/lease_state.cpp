#include "core/shard/lease_state.hpp"

#include <new>
#include <utility>

#include "core/shard/shard.hpp"

namespace dlock::detail {

LeaseState::LeaseState(std::shared_ptr<Shard> shard, Grant grant)
    : shard_(std::move(shard)),
      grant_(std::move(grant)),
      granted_at_(shard_->context().clock->now()),
      valid_until_(grant_.valid_until) {}

LeaseState::~LeaseState() = default;

bool LeaseState::held() noexcept {
  if (phase() != Phase::held || foreign_process()) return false;
  if (!expired()) return true;
  (void)mark_lost();
  return false;
}

bool LeaseState::expired() const noexcept {
  return shard_->context().clock->now() >= valid_until();
}

bool LeaseState::foreign_process() const noexcept {
  return shard_->context().foreign_process();
}

// Of a loss and a join() at the same time, the second to look sees both.
void LeaseState::fire_lost() {
  if (phase_.load() != Phase::lost) return;
  lost_.request_stop();
  if (joined_.load()) signal_of_all_.request_stop();
}

void LeaseState::join(std::stop_source signal_of_all) {
  signal_of_all_ = std::move(signal_of_all);
  joined_.store(true);
  fire_lost();
}

bool LeaseState::release_and_tell(const std::shared_ptr<LeaseState>& state, engine::IfBusy if_busy) noexcept {
  return release(
      state, [&state = *state](Failure failure, bool was_ours) { state.end_release(std::move(failure), was_ours); },
      if_busy);
}

bool LeaseState::release(const std::shared_ptr<LeaseState>& state, ReleaseCompletion done,
                         engine::IfBusy if_busy) noexcept {
  if (state->foreign_process()) return false;
  if (state->expired()) (void)state->mark_lost();
  const bool ours = state->leave_held(Phase::giving_back);
  if (ours) {
    state->release_done_ = std::move(done);
    state->phase_.store(Phase::given_back, std::memory_order_release);
  } else if (state->phase() == Phase::gone || state->phase() == Phase::giving_back) {
    return false;
  }
  // Also where it was given back before: there may have been no memory then.
  bool accepted = true;
  try {
    accepted = state->shard().engine().dispatch([state] { state->shard().leases().give_back(state); }, if_busy);
  } catch (const std::bad_alloc&) {
    return ours;
  }
  if (ours && !accepted) {  // close() made it lost and released it
    state->set_gone();
    state->answer_release({}, false);
  }
  return ours;
}

void LeaseState::answer_release(Failure failure, bool was_ours) {
  const auto done = std::move(release_done_);
  if (done) done(std::move(failure), was_ours);
}

void LeaseState::end_release(Failure failure, bool was_ours) noexcept {
  release_failure_ = std::move(failure);
  was_ours_ = was_ours;
  release_ended_.set();
}

}  // namespace dlock::detail
