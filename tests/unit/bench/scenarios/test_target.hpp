// A target for the tests of scenarios: an embedded backend, and floors that only count.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "bench/plan.hpp"
#include "bench/targets/target.hpp"

namespace dlock::bench {

class TestTarget final : public Target {
 public:
  explicit TestTarget(std::string url = "memory://");

  [[nodiscard]] std::string url(std::size_t locks) const override;
  [[nodiscard]] std::size_t most_locks() const override { return most_locks_; }
  [[nodiscard]] std::size_t most_floors() const override { return most_floors_; }
  [[nodiscard]] bool has_floor() const override { return has_floor_; }
  [[nodiscard]] std::unique_ptr<Floor> make_floor(const std::string& name) override;
  [[nodiscard]] std::optional<Operations> operations() override;
  [[nodiscard]] std::unique_ptr<Target> at_distance(std::chrono::nanoseconds round_trip) override;
  void clean_up() override {}

  std::size_t most_locks_ = 0;
  std::size_t most_floors_ = 0;
  bool has_floor_ = true;
  bool counts = true;                              // each time it is asked, a thousand operations and ten wake-ups more
  bool reachable = true;                           // through proxies
  std::function<void()> on_floor_acquire = [] {};  // any thread

  // What has been asked of it.
  [[nodiscard]] std::vector<std::size_t> clients() const;  // for how many locks each of them is
  [[nodiscard]] std::set<std::string> floor_names() const;
  [[nodiscard]] std::vector<std::chrono::nanoseconds> distances() const;

 private:
  std::string url_;
  mutable std::mutex mutex_;  // guards what follows
  mutable std::vector<std::size_t> clients_;
  std::set<std::string> floor_names_;
  std::vector<std::chrono::nanoseconds> distances_;
  double operations_ = 0;
};

// As short as it gets.
[[nodiscard]] Plan tiny_plan();

}  // namespace dlock::bench
