#include "bench/plan.hpp"

namespace dlock::bench {

Plan full_plan() {
  return {};
}

Plan quick_plan() {
  using std::chrono::milliseconds;
  Plan plan;
  plan.quick = true;
  plan.repeats = 3;
  plan.round = milliseconds(150);
  plan.warm_up = milliseconds(50);
  plan.callers = {1, 64};
  plan.waiters = {2, 32};
  plan.round_trips_ms = {0, 5};
  plan.kills = 2;
  return plan;
}

}  // namespace dlock::bench
