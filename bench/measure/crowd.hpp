// Threads that start together and repeat the same call.
//
//   Crowd crowd(64, [&](std::size_t worker, const std::stop_token&) { return pair_of_calls(worker); });
//   crowd.gather(stop);                                          // all have made their work
//   crowd.start();
//   (void)crowd.measure(warm_up, stop);
//   const Window window = crowd.measure(1s, stop);
//   crowd.finish();
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "bench/measure/load.hpp"

namespace dlock::bench {

class Crowd : public Load {
 public:
  // One call. Returns the part of its time that is a sample; nullopt: none. The token is the worker's own.
  using Work = std::function<std::optional<Clock::duration>(const std::stop_token& stop)>;
  // Runs on the worker's thread, so that all workers connect at the same time.
  using MakeWork = std::function<Work(std::size_t worker, const std::stop_token& stop)>;

  Crowd(std::size_t size, MakeWork make);
  // Ends like finish(), but drops a failure.
  ~Crowd() override;

  // A failure is an exception of a worker. After the crowd's own stop request, Error(cancelled) is none.

  void gather(const std::stop_token& stop) override;
  void start() override;
  // Stops the workers, waits for them, and returns the calls that have ended since the last window. Throws the first
  // failure.
  Window finish();

  [[nodiscard]] std::uint64_t calls() const override;

 protected:
  [[nodiscard]] Window take() override;
  [[nodiscard]] bool has_sample() const override;

 private:
  struct Worker {
    mutable std::mutex mutex;  // guards what follows
    Samples samples;
    std::uint64_t calls = 0;  // since the last take
    std::uint64_t all_calls = 0;
  };

  void run(std::size_t worker, const std::stop_token& stop) noexcept;
  void work_until_stopped(std::size_t worker, const std::stop_token& stop);
  void stop_all();

  MakeWork make_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::size_t ready_ = 0;              // guarded by Load::mutex_
  bool started_ = false;               // guarded by Load::mutex_
  std::vector<std::jthread> threads_;  // ended first
};

}  // namespace dlock::bench
