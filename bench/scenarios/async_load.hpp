// Keeps a number of asynchronous acquires in flight, each with its own name: each lock is released once acquired, and
// acquired again once released.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <dlock/dlock.hpp>

#include "bench/measure/load.hpp"
#include "bench/targets/target.hpp"

namespace dlock::bench {

class AsyncLoad final : public Load {
 public:
  // Uses one client of the target.
  AsyncLoad(const Target& target, std::size_t count);
  // Waits for calls in flight, at most a few seconds.
  ~AsyncLoad() override;

  void start() override;
  // A call is an acquire and a release; each counts as half a call, because many concurrent calls may all be about to
  // acquire, and then all about to release.
  [[nodiscard]] std::uint64_t calls() const override;

 private:
  [[nodiscard]] Window take() override;
  [[nodiscard]] bool has_sample() const override;
  void acquire(std::size_t index);
  void acquired(std::size_t index, std::error_code ec, Lease lease);
  void released(std::size_t index, std::error_code ec, bool was_ours);
  void drop(const std::string& failure);

  // Guarded by Load::mutex_, down to the samples.
  bool stopping_ = false;
  std::size_t under_way_ = 0;
  std::uint64_t halves_ = 0;
  std::uint64_t taken_halves_ = 0;
  Samples samples_;
  // Not guarded: each element belongs to its call, which is never concurrent with itself.
  std::vector<Clock::time_point> started_;
  std::stop_source cancel_;
  std::vector<DistributedLock> locks_;
  std::optional<Client> client_;
};

}  // namespace dlock::bench
