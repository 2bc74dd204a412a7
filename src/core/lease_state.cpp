#include "core/lease_state.hpp"

#include "util/process.hpp"

namespace dlock::detail {

LeaseState::LeaseState(std::shared_ptr<ClientCore> core, std::shared_ptr<const Clock> clock, const Grant& grant,
                       std::uint64_t fork_generation)
    : core_(std::move(core)),
      clock_(std::move(clock)),
      name_(grant.name),
      owner_(grant.owner),
      token_(grant.token),
      granted_at_(clock_->now()),
      fork_generation_(fork_generation),
      valid_until_(grant.valid_until) {}

bool LeaseState::held() noexcept {
  if (phase() != Phase::held || foreign_process()) return false;
  if (!expired()) return true;
  (void)mark_lost();
  return false;
}

bool LeaseState::foreign_process() const noexcept {
  return util::fork_generation() != fork_generation_;
}

}  // namespace dlock::detail
