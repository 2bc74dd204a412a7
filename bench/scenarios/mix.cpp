#include <memory>
#include <string>
#include <thread>

#include "bench/measure/crowd.hpp"
#include "bench/measure/random.hpp"
#include "bench/measure/statistics.hpp"
#include "bench/scenarios/pairs.hpp"
#include "bench/scenarios/parts.hpp"
#include "bench/scenarios/scenario.hpp"

namespace dlock::bench {

namespace {

constexpr std::size_t most_callers = 64;
constexpr std::size_t name_count = 1000;
constexpr double skew = 1;
constexpr std::chrono::microseconds mean_hold{1000};

// A sample is the wait for the lock.
Crowd::Work caller(const Client& client, const Zipf& names, std::size_t index) {
  const auto random = std::make_shared<Random>(index);
  return [&client, &names, random](const std::stop_token& stop) {
    DistributedLock lock = client.make_lock(lock_name("mix/" + std::to_string(names(*random))));
    const auto start = Clock::now();
    Lease lease = lock.acquire({.cancel = stop});
    const Clock::duration waited = Clock::now() - start;
    const double hold = exponential(*random, std::chrono::duration<double>(mean_hold).count());
    std::this_thread::sleep_for(std::chrono::duration<double>(hold));
    release(lease);
    return waited;
  };
}

std::vector<Measurement> measure_mix(Target& target, std::size_t callers, const Plan& plan,
                                     const std::stop_token& stop) {
  const Subject subject{scenario::mix,
                        {{parameter::callers, static_cast<double>(callers)},
                         {parameter::names, static_cast<double>(name_count)},
                         {parameter::hold_us, static_cast<double>(mean_hold.count())}}};
  Collector collector(target, subject, Who::dlock);
  const Zipf names(name_count, skew);
  const Client client = target.connect(callers);
  Crowd crowd(callers, [&](std::size_t index, const std::stop_token&) { return caller(client, names, index); });
  measure_repeats(crowd, plan, stop, [&](const Window& window) {
    collector.add(quantity::throughput, window.per_second());
    collector.add(window.samples, {quantity::p50, quantity::p99, quantity::longest});
    collector.add(quantity::fairness, fairness_of_turns(window.calls_of_each));
    collector.keep(window.samples);
  });
  return measurements_of({&collector, 1});
}

}  // namespace

void measure_repeats(Crowd& crowd, const Plan& plan, const std::stop_token& stop,
                     const std::function<void(const Window& window)>& add) {
  crowd.gather(stop);
  crowd.start();
  (void)crowd.measure(plan.warm_up, stop);
  for (int repeat = 0; repeat < plan.repeats && !stop.stop_requested(); ++repeat) {
    const Window window = crowd.measure(plan.round, stop);
    if (!window.complete) break;
    add(window);
  }
  (void)crowd.finish();
}

std::vector<Step> mix_steps(Target& target, const Plan& plan) {
  const std::size_t callers = most_possible(target, most_callers);
  return {{.what = "mix, " + std::to_string(callers) + " callers, " + std::to_string(name_count) + " names",
           .scenario = scenario::mix,
           .expected = plan.warm_up + plan.repeats * plan.round,
           .run = [&target, &plan, callers](const std::stop_token& stop) {
             return measure_mix(target, callers, plan, stop);
           }}};
}

}  // namespace dlock::bench
