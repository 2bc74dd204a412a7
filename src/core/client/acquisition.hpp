// One acquire: from the call to its only completion.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include <dlock/lease.hpp>
#include <dlock/options.hpp>
#include <dlock/spi/backend.hpp>
#include <dlock/spi/task.hpp>

#include "core/client/acquire_deadline.hpp"
#include "engine/engine.hpp"
#include "util/event.hpp"

namespace dlock::detail {

class LeaseRecord;
class ClientCore;

// How an acquire ended: with a lease, or with a failure; timed_out means that another lease held the lock.
struct AcquireResult {
  std::shared_ptr<LeaseRecord> lease = nullptr;
  Failure failure = {};
};
using AcquireCompletion = Callback<AcquireResult>;

// The lock to acquire.
struct Target {
  const std::string& name;
  LockKind kind = LockKind::lock;
  Mode mode = Mode::exclusive;
  std::uint32_t permits = 1;
  std::string_view value = {};
};

// A lock of a client.
struct LockPlace {
  [[nodiscard]] Target target(Mode mode = Mode::exclusive) const noexcept { return {name, kind, mode, permits, value}; }

  const std::shared_ptr<ClientCore> core;
  const std::string name;
  const LockKind kind = LockKind::lock;
  const std::uint32_t permits = 1;
  const std::string value = {};
};

class Acquisition final : public GrantSink, public std::enable_shared_from_this<Acquisition> {
 public:
  // The wait counts from the construction. `done` runs exactly once: as a task, or inside begin() if options are wrong
  // or the client is closed. Without it, call run().
  Acquisition(std::shared_ptr<ClientCore> core, const Target& target, AcquireOptions options, AcquireCompletion done);
  ~Acquisition();

  // --- Any thread ---
  // Asks the backend. At most one call.
  void begin(engine::IfBusy if_busy);
  // Ends the acquire, unless it has ended. Never inside the call: the caller may be a stop_source of the program.
  void cancel();
  // Without a completion: begins the acquire and waits for its end. Then take the lease, empty after a failure.
  [[nodiscard]] Failure run();
  [[nodiscard]] Lease take_lease() noexcept { return std::move(lease_); }

  // --- In tasks ---
  // Its key in the client.
  void set_number(std::uint64_t number) noexcept { number_ = number; }
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
  // Finishes with this failure, unless finished.
  void abort(Failure why);
  // Destroys the contention. Not inside a call to the sink.
  void end_contention() noexcept;

  void granted(Grant grant) override;
  void busy() override;
  void unreachable(Failure why) override;
  void failed(Failure why) override;

 private:
  void start();
  [[nodiscard]] LockRequest request(const Target& target) const;
  void contend();
  void restart();
  void check_deadline();
  void arm_deadline();
  void finish(AcquireResult result);
  void answer(AcquireResult result);
  [[nodiscard]] std::optional<Failure> problem() const;

  const std::shared_ptr<ClientCore> core_;
  const AcquireOptions options_;
  LockRequest request_;
  AcquireCompletion done_;
  const TimePoint started_;
  AcquireDeadline deadline_;
  Timer timer_;
  TimePoint armed_for_ = TimePoint::max();
  std::uint64_t number_ = 0;
  bool contending_ = false;  // inside Backend::contend()
  bool finished_ = false;
  std::optional<std::stop_callback<std::function<void()>>> on_cancel_;
  std::unique_ptr<Contention> contention_;

  Lease lease_;  // released with this if it is not taken
  Failure failure_;
  util::Event ended_;
};

// Starts one. `done` runs exactly once: as a task, or inside the call when options are wrong or the client is closed.
std::shared_ptr<Acquisition> start_acquire(std::shared_ptr<ClientCore> core, const Target& target,
                                           AcquireOptions options, AcquireCompletion done,
                                           engine::IfBusy if_busy = engine::IfBusy::leave_task);

}  // namespace dlock::detail
