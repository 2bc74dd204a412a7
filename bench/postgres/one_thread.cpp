#include <cstdio>
#include <stdexcept>
#include <string>

#include <dlock/dlock.hpp>

#include "postgres/floor.hpp"
#include "postgres/measurements.hpp"
#include "samples.hpp"

namespace bench {

namespace {

constexpr int warm_up = 200;

// dlock polls for an answer that it expects soon, which keeps processors from falling asleep, for others as well. So
// the floor is measured twice: before dlock does anything, and in turns with it.
void run(dlock::test::PostgresServer& server, const Plan& plan, const std::string& strategy) {
  const auto floor = make_floor(strategy, server.url(), "floor/one-thread");
  const auto by_floor = [&] {
    floor->acquire();
    floor->release();
  };
  Samples alone;
  for (int i = 0; i < plan.rounds; ++i) take_turn(alone, warm_up, plan.round, by_floor);

  const dlock::Client client = dlock::connect(server.url("strategy=" + strategy));
  dlock::DistributedLock lock = client.lock("one-thread");
  const auto by_dlock = [&] {
    dlock::Lease lease = lock.acquire();
    if (!lease.release()) throw std::runtime_error("dlock lost a lock");
  };
  Samples between;
  Samples dlock;
  for (int i = 0; i < plan.rounds; ++i) {
    take_turn(dlock, warm_up, plan.round, by_dlock);
    take_turn(between, warm_up, plan.round, by_floor);
  }
  print_one_thread((strategy + ", floor alone").c_str(), alone);
  print_one_thread((strategy + ", dlock").c_str(), dlock);
  print_one_thread((strategy + ", floor in turns").c_str(), between);
  const double p50 = dlock.percentile(0.5);
  std::printf("one thread, %s, p50 ratio %.2f to the floor alone, %.2f to the floor in turns\n\n", strategy.c_str(),
              p50 / alone.percentile(0.5), p50 / between.percentile(0.5));
}

}  // namespace

void measure_one_thread(dlock::test::PostgresServer& server, const Plan& plan) {
  for (const std::string& strategy : plan.strategies) run(server, plan, strategy);
}

}  // namespace bench
