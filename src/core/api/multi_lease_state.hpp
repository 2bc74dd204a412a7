// Several leases as one: what a MultiLease, and before that the acquire of one, consists of.
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

// Some locks. Constant once it is made.
struct LockPlaces {
  // Throws Error(invalid_argument) where there are none or two are the same.
  explicit LockPlaces(std::vector<LockPlace> as_named);

  std::vector<LockPlace> places;   // in the order in which they were named
  std::vector<std::string> names;  // of these
  std::vector<std::size_t> order;  // in which they are taken
};

// The failure, in words that name the lock.
[[nodiscard]] Failure naming(const std::string& lock, Failure failure);

class MultiLeaseState {
 public:
  explicit MultiLeaseState(std::shared_ptr<const LockPlaces> locks);

  [[nodiscard]] static MultiLease make_lease(std::shared_ptr<MultiLeaseState> state) noexcept {
    return MultiLease(std::move(state));
  }

  // --- While they are acquired: one thread at a time ---

  // The lease of the lock that was named as the i-th.
  void put(std::size_t i, Lease lease);
  // Fires with the loss of the first of those that are there.
  [[nodiscard]] std::stop_token lost_token() const noexcept { return lost_.get_token(); }

  // --- Any thread ---

  [[nodiscard]] const LockPlaces& locks() const noexcept { return *locks_; }
  [[nodiscard]] const std::vector<Lease>& leases() const noexcept { return leases_; }
  [[nodiscard]] bool held() const noexcept;
  // Whether this is the engine thread of one of the clients, where nothing may wait, for another client neither.
  [[nodiscard]] bool must_not_block() const noexcept;
  // Looks for losses that are not signalled yet.
  [[nodiscard]] std::stop_token look_for_loss() const;
  // Fires with that, or when all are given back.
  [[nodiscard]] std::stop_token ended_token() const noexcept { return ended_.get_token(); }

  // Gives back all that are there, in reverse order, without waiting for the services. The first call answers true and
  // does it.
  bool begin_release(bool may_wait_for_turn) noexcept;
  // After a call that was the first: waits for the services' word, at most for so long with each client. Answers what
  // went wrong first, and in `ours` whether all had been ours.
  using Limit = std::chrono::nanoseconds (*)(const ClientContext& context) noexcept;
  [[nodiscard]] Failure await_release(bool& ours, Limit limit);
  // All of this on the way out: waits for a bounded time, and never on an engine thread.
  void let_go() noexcept;
  // All of this without waiting; the handler runs exactly once.
  void release_and_call(Completion<bool> handler);
  // All of this without waiting; the clients' observers are notified of failures.
  void release_in_background() noexcept;

 private:
  class WaitInAll;
  class Ending;
  struct End {
    void operator()() const noexcept { source.request_stop(); }
    std::stop_source& source;
  };

  // Whether it was this call.
  [[nodiscard]] bool mark_released() noexcept;

  const std::shared_ptr<const LockPlaces> locks_;
  std::vector<Lease> leases_;  // as named; empty where there is none yet
  std::vector<bool> begun_;    // whose release we began
  std::stop_source lost_;
  std::stop_source ended_;
  const std::stop_callback<End> end_at_loss_{lost_.get_token(), End{ended_}};
  std::atomic<bool> released_{false};
};

}  // namespace dlock::detail
