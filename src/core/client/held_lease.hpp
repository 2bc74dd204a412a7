// The tasks' side of a lease: drives its keeper with timers and the backend's answers.
#pragma once

#include <system_error>
#include <vector>

#include <dlock/spi/backend.hpp>

#include "core/client/lease_keeper.hpp"

namespace dlock::detail {

class LeaseState;
class ClientCore;

// Lives in tasks, as a part of the LeaseState, from the grant to the release.
class HeldLease {
 public:
  // `fixed_end`: ends then by this client's clock alone, while the service would keep the lock; TimePoint::max() for
  // not.
  HeldLease(LeaseState& state, LeaseKeeper::Terms terms, TimePoint fixed_end);

  // Each of these may end with the lease being forgotten, and this with it.
  void start();
  void extended(TimePoint valid_until);
  void reconnected();
  void renewal_ended(const RenewOutcome& outcome);

  [[nodiscard]] bool has_fixed_end() const noexcept { return fixed_end_ != TimePoint::max(); }
  // Lost, but not yet given back by the program.
  [[nodiscard]] bool lost() const noexcept { return lost_; }
  // Stops the keeper.
  void set_lost() noexcept;
  // Whether the backend may still know this grant, so that giving the lease back has to reach it.
  [[nodiscard]] bool in_backend() const noexcept { return in_backend_; }
  void set_gone_from_backend() noexcept { in_backend_ = false; }

 private:
  void follow(LeaseKeeper::Step step);
  void renew();
  void warn_once(const Failure& failure);
  [[nodiscard]] bool over_for_program();
  void lose();

  LeaseState& state_;
  ClientCore& core_;
  LeaseKeeper keeper_;
  Timer timer_;
  const TimePoint fixed_end_;
  TimePoint renewal_sent_;
  std::vector<std::error_code> warned_of_;  // since the last renewal
  bool lost_ = false;
  bool in_backend_ = true;
};

}  // namespace dlock::detail
