// Threads that start together and do the same thing over and over, while their calls are measured.
//
//   Crowd crowd(64, [&](std::size_t worker, const std::stop_token&) { return pair_of_calls(worker); });
//   crowd.gather(stop);                                          // all have made their work
//   crowd.start();
//   (void)crowd.measure(warm_up, stop);
//   const Window window = crowd.measure(1s, stop);
//   crowd.finish();
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "bench/measure/samples.hpp"

namespace dlock::bench {

// A time of measuring, and the calls that ended in it.
struct Window {
  Samples samples;
  std::vector<std::uint64_t> calls_of_each;  // worker
  std::chrono::nanoseconds length{0};
  std::chrono::nanoseconds processor_time{0};  // of the whole process
  std::uint64_t context_switches{0};           // of the whole process
  bool complete = true;                        // false: a stop was requested

  [[nodiscard]] std::uint64_t calls() const;
  [[nodiscard]] double per_second() const;
  [[nodiscard]] double switches_each() const;  // of a call; 0 without calls
};

class Crowd {
 public:
  // One call. Answers with the part of its time that is a sample; nothing if none is. The token is the worker's own.
  using Work = std::function<std::optional<Clock::duration>(const std::stop_token& stop)>;
  // Runs on the thread of the worker, so that all of them connect at the same time.
  using MakeWork = std::function<Work(std::size_t worker, const std::stop_token& stop)>;

  Crowd(std::size_t size, MakeWork make);
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;
  // Ends like finish(), and does not say what went wrong.
  ~Crowd();

  // The following throw what a worker threw; then the crowd is at its end. What workers throw once they have been told
  // to stop counts only if it is not Error(cancelled).

  // Waits until all have made their work.
  void gather(const std::stop_token& stop);
  // Lets them begin, all at once.
  void start();
  // Waits for that time, and longer if there is no sample until then, because nothing could be said of the calls;
  // throws std::runtime_error if there is none ten seconds later. Soon over when a stop is requested. Calls that ended
  // before do not count.
  [[nodiscard]] Window measure(std::chrono::nanoseconds length, const std::stop_token& stop);
  // Stops them, waits for them, and answers with the calls that have ended since the last window.
  Window finish();

  // That have ended since the start, whether or not they were measured.
  [[nodiscard]] std::uint64_t calls() const;

 private:
  struct Worker {
    mutable std::mutex mutex;  // guards what follows
    Samples samples;
    std::uint64_t calls = 0;  // of the window
    std::uint64_t all_calls = 0;
  };

  void run(std::size_t worker, const std::stop_token& stop) noexcept;
  void work_until_stopped(std::size_t worker, const std::stop_token& stop);
  void wait_until(Clock::time_point time, const std::stop_token& stop);
  [[nodiscard]] bool has_samples() const;
  [[nodiscard]] Window take();
  void stop_all();
  void throw_failure();

  MakeWork make_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable_any changed_;
  std::size_t ready_ = 0;
  bool started_ = false;
  std::exception_ptr failure_;  // the first
  // Not guarded; ended first.
  std::vector<std::jthread> threads_;
};

}  // namespace dlock::bench
