// What a Lease and the client's core share.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include <dlock/backend.hpp>
#include <dlock/lease.hpp>

namespace dlock::detail {

class ClientCore;

// Each phase is left at most once, by whoever comes first: held -> lost or held -> released.
class LeaseState {
 public:
  enum class Phase : std::uint8_t { held, lost, released };

  LeaseState(std::shared_ptr<ClientCore> core, std::shared_ptr<const Clock> clock, const Grant& grant,
             std::uint64_t fork_generation);

  [[nodiscard]] static Lease make_lease(std::shared_ptr<LeaseState> state) noexcept { return Lease(std::move(state)); }

  // Any thread, never blocks. Once it was false because of the time, it stays false: a renewal that arrives in the same
  // instant comes too late.
  [[nodiscard]] bool held() noexcept;
  [[nodiscard]] bool expired() const noexcept { return clock_->now() >= valid_until(); }
  [[nodiscard]] TimePoint valid_until() const noexcept { return valid_until_.load(std::memory_order_acquire); }
  void extend(TimePoint valid_until) noexcept { valid_until_.store(valid_until, std::memory_order_release); }
  // In a child made by fork() the lease is the parent's business.
  [[nodiscard]] bool foreign_process() const noexcept;
  [[nodiscard]] Phase phase() const noexcept { return phase_.load(std::memory_order_acquire); }
  // Answers whether it was this call that changed the phase.
  bool mark_lost() noexcept { return leave_held(Phase::lost); }
  bool mark_released() noexcept { return leave_held(Phase::released); }

  // Runs stop callbacks on this thread, if it was lost.
  void fire_lost() {
    if (phase() == Phase::lost) lost_.request_stop();
  }
  [[nodiscard]] std::stop_token lost_token() const noexcept { return lost_.get_token(); }

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const OwnerId& owner() const noexcept { return owner_; }
  [[nodiscard]] FencingToken token() const noexcept { return token_; }
  [[nodiscard]] TimePoint granted_at() const noexcept { return granted_at_; }
  [[nodiscard]] ClientCore& core() const noexcept { return *core_; }

 private:
  bool leave_held(Phase to) noexcept {
    Phase expected = Phase::held;
    return phase_.compare_exchange_strong(expected, to, std::memory_order_acq_rel);
  }

  const std::shared_ptr<ClientCore> core_;
  const std::shared_ptr<const Clock> clock_;
  const std::string name_;
  const OwnerId owner_;
  const FencingToken token_;
  const TimePoint granted_at_;
  const std::uint64_t fork_generation_;
  std::atomic<TimePoint> valid_until_;
  std::atomic<Phase> phase_{Phase::held};
  std::stop_source lost_;
};

}  // namespace dlock::detail
