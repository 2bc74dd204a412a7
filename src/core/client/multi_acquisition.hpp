// The acquire of several locks: one after the other, all or nothing.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include <dlock/multi_lease.hpp>
#include <dlock/options.hpp>

#include "core/client/multi_lease_state.hpp"
#include "core/shard/acquisition.hpp"

namespace dlock::detail {

// What is asked for next, with which options, and how it ends. Asks nothing itself. One thread at a time.
//
//   MultiAttempt attempt(locks, options);
//   if (attempt.may_try_all()) { try attempt.all() at once; attempt.got_all(leases), or end if attempt.cannot(why) }
//   while (!attempt.complete()) { ask for attempt.next(); attempt.got(lease); or attempt.failed(why) and end }
//   if (auto why = attempt.loss()) end; else hand out attempt.leases()
class MultiAttempt {
 public:
  // The time of the call is that of the construction.
  MultiAttempt(std::shared_ptr<const LockPlaces> locks, AcquireOptions options);
  MultiAttempt(const MultiAttempt&) = delete;
  MultiAttempt& operator=(const MultiAttempt&) = delete;
  ~MultiAttempt() = default;

  // Why nothing should be asked for at all.
  [[nodiscard]] std::optional<Failure> problem() const;
  // Whether one request may ask for all of them first.
  [[nodiscard]] bool may_try_all() const noexcept;
  [[nodiscard]] std::shared_ptr<Acquisition> all(AcquireCompletion done) const;
  void got_all(Lease first, std::vector<Lease> others);
  // Why it is no use to ask for one after the other, after the request for all at once failed.
  [[nodiscard]] std::optional<Failure> cannot(const Failure& why);
  [[nodiscard]] bool complete() const noexcept { return got_ == locks_->order.size(); }
  [[nodiscard]] const LockPlace& next() const { return locks_->places[locks_->order[got_]]; }
  // The one before the next; nullptr if that is the first.
  [[nodiscard]] const LockPlace* before() const {
    return got_ == 0 ? nullptr : &locks_->places[locks_->order[got_ - 1]];
  }
  [[nodiscard]] AcquireOptions next_options() const;
  void got(Lease lease);
  // What the caller is told if the next one cannot be acquired.
  [[nodiscard]] Failure failed(Failure why) const;
  // What the caller is told if all were acquired, but one of the first was lost by then.
  [[nodiscard]] std::optional<Failure> loss() const;

  // No more to be got: ends what watches for losses and for the caller's cancel.
  void end() noexcept;
  [[nodiscard]] const std::shared_ptr<MultiLeaseState>& leases() const noexcept { return leases_; }
  [[nodiscard]] std::shared_ptr<MultiLeaseState> take_leases() noexcept { return std::move(leases_); }

 private:
  [[nodiscard]] std::optional<Failure> loss(const std::string& before) const;

  const std::shared_ptr<const LockPlaces> locks_;
  const AcquireOptions options_;
  const TimePoint deadline_;
  std::shared_ptr<MultiLeaseState> leases_;
  std::size_t got_ = 0;
  bool begun_ = false;     // some of the time may have passed
  std::stop_source stop_;  // ends the wait for the next
  std::optional<std::stop_callback<std::function<void()>>> on_cancel_;
  std::optional<std::stop_callback<std::function<void()>>> on_loss_;
};

// The same without blocking: each answer asks for the next lock. Lives until the handler runs.
class MultiAcquisition : public std::enable_shared_from_this<MultiAcquisition> {
 public:
  MultiAcquisition(std::shared_ptr<const LockPlaces> locks, AcquireOptions options, Completion<MultiLease> handler);
  void begin();

 private:
  void ask_for_all();
  void all_answered(AcquireResult result);
  void ask();
  void answered(AcquireResult result);
  void finish(const LockPlace& by, Failure failure);

  MultiAttempt attempt_;
  // Handed on, never copied: what it captured must be destroyed where it runs, not inside a task.
  Completion<MultiLease> handler_;
  std::atomic<std::thread::id> asking_;  // the thread that is inside ask()
};

}  // namespace dlock::detail
