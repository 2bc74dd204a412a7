// Calls that go on while windows of time are measured.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <stop_token>
#include <vector>

#include "bench/measure/samples.hpp"

namespace dlock::bench {

// A time of measuring, and the calls that ended in it.
struct Window {
  Samples samples;
  std::vector<std::uint64_t> calls_of_each;  // caller
  std::chrono::nanoseconds length{0};
  std::chrono::nanoseconds processor_time{0};  // of the whole process
  std::uint64_t context_switches{0};           // of the whole process
  Clock::duration longest_wait{0};             // for a lock, where the load knows it; waits that have not ended count
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
  // Waits for that time, and longer if there is no sample until then, because nothing could be said of the calls;
  // throws std::runtime_error if there is none ten seconds later. Soon over when a stop is requested. Calls that ended
  // before do not count.
  [[nodiscard]] Window measure(std::chrono::nanoseconds length, const std::stop_token& stop);
  // That have ended since the start, whether or not they were measured.
  [[nodiscard]] virtual std::uint64_t calls() const = 0;

 protected:
  // The calls that have ended since the last take; their usage is not known here.
  [[nodiscard]] virtual Window take() = 0;
  // Whether what could be taken now has a sample.
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
