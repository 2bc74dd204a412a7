// Calls that continue while windows of time are measured.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <stop_token>
#include <vector>

#include "bench/measure/samples.hpp"

namespace dlock::bench {

// A measured time, and the calls that ended in it.
struct Window {
  Samples samples;
  std::vector<std::uint64_t> calls_of_each;  // caller
  std::chrono::nanoseconds length{0};
  std::chrono::nanoseconds processor_time{0};  // of the whole process
  std::uint64_t context_switches{0};           // of the whole process
  Clock::duration longest_wait{0};             // for a lock, if the load knows it; includes waits that have not ended
  bool complete = true;                        // false: a stop was requested

  [[nodiscard]] std::uint64_t calls() const;
  [[nodiscard]] double per_second() const;
};

class Load {
 public:
  Load() = default;
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;
  virtual ~Load() = default;

  // gather() and measure() throw the first failure of a call.

  // Waits until all callers are ready.
  virtual void gather(const std::stop_token& /*stop*/) {}
  virtual void start() = 0;
  // Waits for that time, or longer if there is no sample by then, because nothing could be said about the calls; throws
  // std::runtime_error if there is none ten seconds later. Returns soon after a stop request. Calls that ended before
  // do not count.
  [[nodiscard]] Window measure(std::chrono::nanoseconds length, const std::stop_token& stop);
  // Calls that have ended since the start, measured or not.
  [[nodiscard]] virtual std::uint64_t calls() const = 0;

 protected:
  // The calls that have ended since the last take(), without their usage.
  [[nodiscard]] virtual Window take() = 0;
  // Whether take() would return a sample now.
  [[nodiscard]] virtual bool has_sample() const = 0;
  void fail(std::exception_ptr failure);
  void throw_failure() const;

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;  // notified of each failure
  std::exception_ptr failure_;           // the first; guarded

 private:
  void wait_until(Clock::time_point time, const std::stop_token& stop);
};

}  // namespace dlock::bench
