// One acquire in progress: from the request to its only completion.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

#include <dlock/backend.hpp>
#include <dlock/options.hpp>

#include "core/acquire_deadline.hpp"

namespace dlock::detail {

class ClientCore;
class LeaseState;

// How an acquire ended: with a lease, or with a failure; timed_out means that somebody else held the lock.
struct AcquireResult {
  std::shared_ptr<LeaseState> lease = nullptr;
  Failure failure = {};
};
using AcquireCompletion = std::function<void(AcquireResult)>;

// Lives in tasks of the engine. Owned by the core while it is unfinished.
class Acquisition final : public GrantSink {
 public:
  using Id = std::uint64_t;

  Acquisition(ClientCore& core, Id id, LockRequest request, AcquireOptions options, AcquireCompletion done);
  ~Acquisition();

  // Asks the backend. Answers whether it finished at once.
  bool start();
  // Starts over with a new owner, after a grant that came too late to be of use.
  void restart();
  // Finishes with this failure, unless finished.
  void abort(Failure why);
  // The deadline's timer has run.
  void deadline_passed();

  void granted(Grant grant) override;
  void busy() override;
  void unreachable(Failure why) override;
  void failed(Failure why) override;

 private:
  void check_deadline();
  void arm_deadline();
  void finish(AcquireResult result);

  ClientCore& core_;
  const Id id_;
  LockRequest request_;
  AcquireOptions options_;
  AcquireCompletion done_;
  const TimePoint started_;
  AcquireDeadline deadline_;
  Timer timer_;
  TimePoint armed_for_ = TimePoint::max();
  bool starting_ = false;
  bool finished_ = false;
  std::optional<std::stop_callback<std::function<void()>>> on_cancel_;
  std::unique_ptr<Contention> contention_;
};

}  // namespace dlock::detail
