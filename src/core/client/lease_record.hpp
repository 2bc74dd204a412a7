// A lease as the program sees it, shared with the client's tasks.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include <dlock/lease.hpp>
#include <dlock/spi/backend.hpp>
#include <dlock/spi/task.hpp>

#include "core/client/failures.hpp"
#include "core/client/stop_signal.hpp"
#include "engine/engine.hpp"
#include "util/event.hpp"

namespace dlock::detail {

class ClientCore;

// Called when a release ended: whether the lock had still been ours, and what went wrong.
using ReleaseCompletion = Callback<Failure, bool>;

// Each phase is left at most once, by the side that comes first:
//
//   phase       | the program                      | the client's tasks                               | left for
//   ------------+----------------------------------+--------------------------------------------------+-------------
//   held        | may rely on it until valid_until | renew it, and lose it in time                    | lost,
//               |                                  |                                                  | giving_back
//   lost        | was or will be told by lost()    | have given it up, except release()              |
//   giving_back | is inside release()              | leave it alone                                   | given_back
//   given_back  | has released it                  | the task of release(), or the next renewal task  | gone
//               |                                  | before it, releases it in the backend            |
//   gone        |                                  | have no more to do with it                       |
class LeaseRecord : public std::enable_shared_from_this<LeaseRecord> {
 public:
  enum class Phase : std::uint8_t { held, lost, giving_back, given_back, gone };

  LeaseRecord(std::shared_ptr<ClientCore> core, Grant grant);
  ~LeaseRecord();

  [[nodiscard]] static Lease make_lease(std::shared_ptr<LeaseRecord> state) noexcept { return Lease(std::move(state)); }
  // nullptr for an empty lease.
  [[nodiscard]] static const std::shared_ptr<LeaseRecord>& of(const Lease& lease) noexcept { return lease.state_; }

  // --- Any thread ---

  // Never blocks. Once false because of the time, it stays false, even if a renewal arrives in the same instant.
  [[nodiscard]] bool held() noexcept;
  [[nodiscard]] bool expired() const noexcept;
  [[nodiscard]] TimePoint valid_until() const noexcept { return valid_until_.load(std::memory_order_acquire); }
  [[nodiscard]] Phase phase() const noexcept { return phase_.load(std::memory_order_acquire); }
  // Answers whether it was this call that changed the phase.
  bool mark_lost() noexcept { return leave_held(Phase::lost); }

  [[nodiscard]] std::chrono::nanoseconds remaining() noexcept;
  // Runs stop callbacks on this thread, if it was lost.
  void fire_lost() noexcept;
  // As fire_lost(), but marks an expired lease as lost first.
  void look_for_loss() noexcept;
  [[nodiscard]] std::stop_token lost_token() { return lost_.token(); }
  [[nodiscard]] std::stop_token ended_token() { return ended_.token(); }
  // For one of several leases: its loss fires their signal, too. At most one call.
  void join(std::stop_source signal_of_all);

  // Releases the lease, after ended_token() has fired on this thread. True: takes `done`, which runs exactly once, as a
  // task, or right here if the client is closed. False: it was lost or released before; leaves `done` alone.
  static bool release(std::shared_ptr<LeaseRecord> state, ReleaseCompletion& done, engine::IfBusy if_busy) noexcept;

  // release() without a caller that waits: the observer is notified of a failure.
  static void release_in_background(const std::shared_ptr<LeaseRecord>& state) noexcept;
  // release() for a caller that waits: true if release_ended() will be set.
  static bool release_and_tell(const std::shared_ptr<LeaseRecord>& state, engine::IfBusy if_busy) noexcept;
  // Set by end_release(); then release_failure() has the outcome.
  [[nodiscard]] util::Event& release_ended() noexcept { return release_ended_; }
  [[nodiscard]] const Failure& release_failure() const noexcept { return release_failure_; }
  [[nodiscard]] bool was_ours() const noexcept { return was_ours_; }
  void end_release(Failure failure, bool was_ours) noexcept;

  [[nodiscard]] const std::string& name() const noexcept { return grant_.name; }
  [[nodiscard]] std::string described() const { return detail::described(grant_.kind, grant_.name); }
  [[nodiscard]] const OwnerId& owner() const noexcept { return grant_.owner; }
  [[nodiscard]] FencingToken token() const noexcept { return grant_.token; }
  [[nodiscard]] TimePoint granted_at() const noexcept { return granted_at_; }
  [[nodiscard]] ClientCore& core() const noexcept { return *core_; }
  // True in a child made by fork(): the lease is the parent's.
  [[nodiscard]] bool foreign_process() const noexcept;

  // --- In tasks ---

  // With the present valid_until().
  [[nodiscard]] Grant grant() const {
    Grant present = grant_;
    present.valid_until = valid_until();
    return present;
  }
  [[nodiscard]] std::chrono::nanoseconds length() const noexcept { return grant_.lease; }
  void extend(TimePoint valid_until) noexcept { valid_until_.store(valid_until, std::memory_order_release); }
  void set_gone() noexcept { phase_.store(Phase::gone, std::memory_order_release); }
  // Calls the completion of release(). Once, after set_gone().
  void answer_release(Failure failure, bool was_ours);

 private:
  bool leave_held(Phase to) noexcept {
    Phase expected = Phase::held;
    return phase_.compare_exchange_strong(expected, to);  // in one total order with joined_
  }

  const std::shared_ptr<ClientCore> core_;
  const Grant grant_;
  const TimePoint granted_at_;
  std::atomic<TimePoint> valid_until_;
  std::atomic<Phase> phase_{Phase::held};
  StopSignal lost_;
  StopSignal ended_;
  std::stop_source signal_of_all_{std::nostopstate};  // written once, before joined_
  std::atomic<bool> joined_{false};

  ReleaseCompletion release_done_;  // set while giving_back; the tasks' afterwards
  Failure release_failure_;
  bool was_ours_ = false;
  util::Event release_ended_;
};

}  // namespace dlock::detail
