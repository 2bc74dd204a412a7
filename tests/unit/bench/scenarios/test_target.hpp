// A target for the tests of scenarios: an embedded backend, and floors that only call a function.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/plan.hpp"
#include "bench/targets/target.hpp"

namespace dlock::bench {

class TestTarget final : public Target {
 public:
  explicit TestTarget(std::string url = "memory://") : url_(std::move(url)) { info_.label = "the service"; }

  [[nodiscard]] std::string url(std::size_t locks) const override {
    const std::scoped_lock lock(mutex_);
    clients_.push_back(locks);
    return url_;
  }
  [[nodiscard]] std::size_t most_locks() const override { return most_locks_; }
  [[nodiscard]] std::size_t most_floors() const override { return most_floors_; }
  [[nodiscard]] bool has_floor() const override { return has_floor_; }
  [[nodiscard]] std::unique_ptr<Floor> make_floor(const std::string& name) override {
    class TestFloor final : public Floor {
     public:
      explicit TestFloor(std::function<void()> on_acquire) : on_acquire_(std::move(on_acquire)) {}
      void acquire() override { on_acquire_(); }
      void release() override {}

     private:
      std::function<void()> on_acquire_;
    };
    const std::scoped_lock lock(mutex_);
    floors_.push_back(name);
    return std::make_unique<TestFloor>(on_floor_acquire);
  }
  [[nodiscard]] std::optional<Operations> operations() override {
    const std::scoped_lock lock(mutex_);
    if (!counts) return std::nullopt;
    const double count = count_operations();
    return Operations{.carried_out = count, .wake_ups = count / 100};
  }
  [[nodiscard]] std::unique_ptr<Target> at_distance(std::chrono::nanoseconds round_trip) override {
    distances_.push_back(round_trip);
    return over_tcp ? std::make_unique<TestTarget>(url_) : nullptr;
  }
  void clean_up() override {}

  std::size_t most_locks_ = 0;
  std::size_t most_floors_ = 0;
  bool has_floor_ = true;
  bool counts = true;                              // and one wake-up for a hundred operations
  bool over_tcp = true;                            // through proxies
  std::function<void()> on_floor_acquire = [] {};  // any thread
  // Each time it is asked, a thousand more.
  std::function<double()> count_operations = [count = 0.0]() mutable { return count += 1000; };

  // What has been asked of it.
  [[nodiscard]] std::vector<std::size_t> clients() const {  // for how many locks each of them is
    const std::scoped_lock lock(mutex_);
    return clients_;
  }
  [[nodiscard]] std::vector<std::string> floors() const {  // names
    const std::scoped_lock lock(mutex_);
    return floors_;
  }
  [[nodiscard]] const std::vector<std::chrono::nanoseconds>& distances() const { return distances_; }

 private:
  std::string url_;
  mutable std::mutex mutex_;  // guards what follows, but for the distances
  mutable std::vector<std::size_t> clients_;
  std::vector<std::string> floors_;
  std::vector<std::chrono::nanoseconds> distances_;
};

// As short as it gets.
[[nodiscard]] inline Plan tiny_plan() {
  using std::chrono::milliseconds;
  Plan plan;
  plan.repeats = 2;
  plan.round = milliseconds(2);
  plan.warm_up = milliseconds(1);
  plan.callers = {1, 4};
  plan.outstanding = {4, 20};
  plan.waiters = {2, 5};
  plan.round_trips_ms = {3};
  plan.kills = 2;
  plan.held = 10;
  return plan;
}

}  // namespace dlock::bench
