#include "tests/unit/bench/scenarios/test_target.hpp"

#include <utility>

namespace dlock::bench {

namespace {

class CountingFloor final : public Floor {
 public:
  explicit CountingFloor(std::function<void()> on_acquire) : on_acquire_(std::move(on_acquire)) {}
  void acquire() override { on_acquire_(); }
  void release() override {}

 private:
  std::function<void()> on_acquire_;
};

}  // namespace

TestTarget::TestTarget(std::string url) : url_(std::move(url)) {
  info_.label = "the service";
  info_.backend = url_.substr(0, url_.find(':'));
}

std::string TestTarget::url(std::size_t locks) const {
  const std::scoped_lock lock(mutex_);
  clients_.push_back(locks);
  return url_;
}

std::unique_ptr<Floor> TestTarget::make_floor(const std::string& name) {
  const std::scoped_lock lock(mutex_);
  floor_names_.insert(name);
  return std::make_unique<CountingFloor>(on_floor_acquire);
}

std::optional<Operations> TestTarget::operations() {
  const std::scoped_lock lock(mutex_);
  if (!counts) return std::nullopt;
  operations_ += 1000;
  return Operations{.carried_out = operations_, .wake_ups = operations_ / 100};
}

std::unique_ptr<Target> TestTarget::at_distance(std::chrono::nanoseconds round_trip) {
  const std::scoped_lock lock(mutex_);
  distances_.push_back(round_trip);
  if (!reachable) return nullptr;
  auto far = std::make_unique<TestTarget>(url_);
  far->has_floor_ = has_floor_;
  return far;
}

std::vector<std::size_t> TestTarget::clients() const {
  const std::scoped_lock lock(mutex_);
  return clients_;
}

std::set<std::string> TestTarget::floor_names() const {
  const std::scoped_lock lock(mutex_);
  return floor_names_;
}

std::vector<std::chrono::nanoseconds> TestTarget::distances() const {
  const std::scoped_lock lock(mutex_);
  return distances_;
}

Plan tiny_plan() {
  using std::chrono::milliseconds;
  Plan plan;
  plan.repeats = 3;
  plan.round = milliseconds(2);
  plan.warm_up = milliseconds(1);
  plan.callers = {1, 4};
  plan.outstanding = {4, 20};
  plan.waiters = {2, 5};
  plan.round_trips_ms = {0, 3};
  plan.kills = 2;
  plan.leases = 10;
  return plan;
}

}  // namespace dlock::bench
