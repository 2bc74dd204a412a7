// The state of a MultiLease, and of the acquire that makes it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include <dlock/multi_lease.hpp>

#include "core/client/acquisition.hpp"
#include "core/client/client_core.hpp"
#include "core/client/lease_record.hpp"

namespace dlock::detail {

// The locks of a MultiLock. Constant after construction.
struct LockPlaces {
  // Throws Error(invalid_argument) if there are none, or two are the same.
  explicit LockPlaces(std::vector<LockPlace> as_named);

  std::vector<LockPlace> places;   // as the program named them
  std::vector<std::string> names;  // of these
  std::vector<std::size_t> order;  // in which they are acquired
};

// The failure, with the lock named in its text.
[[nodiscard]] Failure naming(const std::string& lock, Failure failure);

class MultiLeaseState {
 public:
  explicit MultiLeaseState(std::shared_ptr<const LockPlaces> locks);

  [[nodiscard]] static MultiLease make_lease(std::shared_ptr<MultiLeaseState> state) noexcept {
    return MultiLease(std::move(state));
  }

  // --- While they are acquired: one thread at a time ---

  // Stores the lease of the i-th named lock.
  void put(std::size_t i, Lease lease);
  // Fires when the first of the stored leases is lost.
  [[nodiscard]] std::stop_token lost_token() const noexcept { return lost_.get_token(); }

  // --- Any thread ---

  [[nodiscard]] const LockPlaces& locks() const noexcept { return *locks_; }
  [[nodiscard]] const std::vector<Lease>& leases() const noexcept { return leases_; }
  [[nodiscard]] bool held() const noexcept;
  // Whether this is the engine thread of one of the clients, which must not wait even for a different client.
  [[nodiscard]] bool must_not_block() const noexcept;
  // First signals leases that have expired unnoticed.
  [[nodiscard]] std::stop_token look_for_loss() const;
  // Fires on a loss or a release.
  [[nodiscard]] std::stop_token ended_token() const noexcept { return ended_.get_token(); }

  // Begins to release all leases, in reverse order, without waiting for the services. The first call answers true; the
  // others do nothing.
  bool begin_release(bool may_wait_for_turn) noexcept;
  // After begin_release() answered true: waits for the services' answers, for at most each client's limit. Answers the
  // first failure, and in `ours` whether all leases were held until then.
  using Limit = std::chrono::nanoseconds (*)(const ClientContext& context) noexcept;
  [[nodiscard]] Failure await_release(bool& ours, Limit limit);
  // Both of these, for destructors: waits for a bounded time, and never on an engine thread.
  void let_go() noexcept;
  // Releases all leases without waiting; the handler runs exactly once.
  void release_and_call(Completion<bool> handler);
  // Releases all leases without waiting, and notifies the clients' observers of failures.
  void release_in_background() noexcept;

 private:
  class WaitInAll;
  class Ending;
  struct End {
    void operator()() const noexcept { source.request_stop(); }
    std::stop_source& source;
  };

  // True for the first call.
  [[nodiscard]] bool mark_released() noexcept;

  const std::shared_ptr<const LockPlaces> locks_;
  std::vector<Lease> leases_;  // as named; empty until acquired
  std::vector<bool> begun_;    // the releases that were begun
  std::stop_source lost_;
  std::stop_source ended_;
  const std::stop_callback<End> end_at_loss_{lost_.get_token(), End{ended_}};
  std::atomic<bool> released_{false};
};

}  // namespace dlock::detail
