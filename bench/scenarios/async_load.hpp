// Keeps a number of asynchronous acquires under way, each with a name of its own: what is acquired is released, what is
// released is acquired again.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <dlock/dlock.hpp>

#include "bench/measure/crowd.hpp"
#include "bench/targets/target.hpp"

namespace dlock::bench {

class AsyncLoad {
 public:
  // One client of the target does it all.
  AsyncLoad(const Target& target, std::size_t count);
  AsyncLoad(const AsyncLoad&) = delete;
  AsyncLoad& operator=(const AsyncLoad&) = delete;
  // Waits for what is under way, but no longer than a few seconds.
  ~AsyncLoad();

  void start();

  // The following throw std::runtime_error if a call failed.

  // For that time, and until as many pairs of calls have ended as there are names, so that all connections are there
  // and the first rush has passed, for a few seconds at most.
  void warm_up(std::chrono::nanoseconds length, const std::stop_token& stop);
  // As that of a crowd.
  [[nodiscard]] Window measure(std::chrono::nanoseconds length, const std::stop_token& stop);

  // That have ended. An acquire or a release alone is half a pair: while many are under way, all of them may be about
  // to acquire, and then all of them about to release.
  [[nodiscard]] std::uint64_t pairs() const;

 private:
  void acquire(std::size_t index);
  void acquired(std::size_t index, std::error_code ec, Lease lease);
  void released(std::size_t index, std::error_code ec, bool was_ours);
  void drop(const std::string& failure);
  // Answers whether the condition came true, with the mutex held while it is evaluated.
  template <class Condition>
  bool wait_until(Clock::time_point time, const std::stop_token& stop, const Condition& condition);

  mutable std::mutex mutex_;  // guards what follows, except as said below
  std::condition_variable_any changed_;
  bool stopping_ = false;
  std::size_t under_way_ = 0;
  std::uint64_t halves_ = 0;
  Samples samples_;
  std::string failure_;  // the first
  // Not guarded: each of them belongs to its call, and there is one call of each at a time.
  std::vector<Clock::time_point> started_;
  std::stop_source cancel_;
  std::vector<DistributedLock> locks_;
  std::optional<Client> client_;
};

}  // namespace dlock::bench
