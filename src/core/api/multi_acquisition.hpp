// The acquire of several locks: one after the other, all or nothing. A task of each lock's client asks for the next.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <dlock/multi_lease.hpp>
#include <dlock/options.hpp>

#include "core/api/multi_lease_state.hpp"
#include "core/api/outcome.hpp"
#include "core/api/thread_leases.hpp"
#include "core/client/acquisition.hpp"
#include "util/event.hpp"

namespace dlock::detail {

class MultiAcquisition : public std::enable_shared_from_this<MultiAcquisition> {
 public:
  // The wait counts from the construction. Without a handler, call run().
  MultiAcquisition(std::shared_ptr<const LockPlaces> locks, AcquireOptions options,
                   Completion<MultiLease> handler = nullptr);
  MultiAcquisition(const MultiAcquisition&) = delete;
  MultiAcquisition& operator=(const MultiAcquisition&) = delete;
  ~MultiAcquisition() = default;

  // Returns at once; the handler runs exactly once, as user code. Either this or run(), once.
  void begin();
  // Blocks until it has ended.
  [[nodiscard]] Outcome<MultiLease> run();

 private:
  [[nodiscard]] std::optional<Failure> problem() const;
  [[nodiscard]] const LockPlace& next() const { return locks_->places[locks_->order[got_]]; }
  void ask();
  void answered(AcquireResult result);
  // Why a lease was lost before that event; nothing if all are still held.
  [[nodiscard]] std::optional<Failure> loss(const std::string& before) const;
  // by: its client runs the handler.
  void finish(const LockPlace& by, Failure failure);

  const std::shared_ptr<const LockPlaces> locks_;
  const AcquireOptions options_;
  const TimePoint deadline_;
  // Moved, never copied: its captures must be destroyed where it runs, not inside a task.
  Completion<MultiLease> handler_;
  std::shared_ptr<MultiLeaseState> leases_;
  std::size_t got_ = 0;
  std::stop_source stop_;  // ends the wait for the next lock
  std::optional<std::stop_callback<std::function<void()>>> on_cancel_;
  std::optional<std::stop_callback<std::function<void()>>> on_loss_;
  std::atomic<std::thread::id> asking_;  // the thread that is inside ask()
  Failure failure_;
  util::Event ended_;
};

class MultiLockImpl {
 public:
  explicit MultiLockImpl(std::vector<LockPlace> places)
      : locks(std::make_shared<const LockPlaces>(std::move(places))) {}

  [[nodiscard]] Outcome<MultiLease> acquire(const AcquireOptions& options) const;
  // Waits for at most `wait`; refuses options with a different wait.
  [[nodiscard]] Outcome<MultiLease> try_acquire(Duration wait, AcquireOptions options) const;

  const std::shared_ptr<const LockPlaces> locks;
  BasicThreadLeases<MultiLease> leases;
  DefaultOptions defaults;
};

}  // namespace dlock::detail
