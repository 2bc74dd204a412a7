#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>

#include <dlock/dlock.hpp>

#include "redis/floor.hpp"
#include "redis/measurements.hpp"
#include "samples.hpp"

namespace bench {

namespace {

constexpr int warm_up = 200;

}  // namespace

// dlock polls for an answer that it expects soon, which keeps processors from falling asleep, for others as well. So
// the floor is measured twice: before dlock does anything, and in turns with it.
void measure_one_thread(dlock::test::RedisServer& server, const Plan& plan) {
  Floor floor(server.port());
  const std::string key = "floor/one-thread";
  const std::string token = "0123456789abcdef0123456789abcdef";
  const auto by_floor = [&] {
    if (!floor.acquire(key, token) || !floor.release(key, token)) throw std::runtime_error("the floor lost a lock");
  };
  Samples alone;
  for (int i = 0; i < plan.rounds; ++i) take_turn(alone, warm_up, plan.round, by_floor);

  const dlock::Client client = dlock::connect(server.url());
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
  print_one_thread("floor alone", alone);
  print_one_thread("dlock", dlock);
  print_one_thread("floor in turns with it", between);
  const double p50 = dlock.percentile(0.5);
  std::printf("one thread, p50 ratio %.2f to the floor alone, %.2f to the floor in turns\n\n",
              p50 / alone.percentile(0.5), p50 / between.percentile(0.5));
}

}  // namespace bench
