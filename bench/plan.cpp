#include "bench/plan.hpp"

namespace dlock::bench {

Plan full_plan() {
  return {};
}

Plan quick_plan() {
  using std::chrono::milliseconds;
  Plan plan;
  plan.quick = true;
  plan.repeats = 2;
  plan.round = milliseconds(150);
  plan.warm_up = milliseconds(50);
  plan.callers = {1, 64};
  plan.outstanding = {64, 1000};
  plan.waiters = {2, 8, 32};
  plan.round_trips_ms = {5};
  plan.kills = 1;
  plan.held = 200;
  return plan;
}

}  // namespace dlock::bench
