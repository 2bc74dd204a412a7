#include <cstdio>
#include <stdexcept>
#include <string>

#include <dlock/dlock.hpp>

#include "redis/floor.hpp"
#include "redis/measurements.hpp"
#include "redis/samples.hpp"

namespace bench {

namespace {

// Short turns, so that both see the same machine.
constexpr int turn = 200;

template <class F>
void take_turn(Samples& samples, F&& acquire_and_release) {
  for (int i = 0; i < turn; ++i) {
    const auto start = Samples::Clock::now();
    acquire_and_release();
    samples.add(Samples::Clock::now() - start);
  }
}

void print(const char* who, Samples& samples) {
  std::printf("one thread, %-5s  p50 %7.1f us   p99 %7.1f us   (%zu samples)\n", who, samples.percentile(0.5),
              samples.percentile(0.99), samples.count());
}

}  // namespace

void measure_one_thread(dlock::test::RedisServer& server, const Plan& plan) {
  Floor floor(server.port());
  const dlock::Client client = dlock::connect(server.url());
  dlock::DistributedLock lock = client.lock("one-thread");
  const std::string key = "floor/one-thread";
  const std::string token = "0123456789abcdef0123456789abcdef";
  Samples floor_samples;
  Samples dlock_samples;
  const auto by_floor = [&] {
    if (!floor.acquire(key, token) || !floor.release(key, token)) throw std::runtime_error("the floor lost a lock");
  };
  const auto by_dlock = [&] {
    dlock::Lease lease = lock.acquire();
    if (!lease.release()) throw std::runtime_error("dlock lost a lock");
  };
  Samples warm_up;
  take_turn(warm_up, by_floor);
  take_turn(warm_up, by_dlock);
  const auto end = Samples::Clock::now() + 2 * plan.rounds * plan.round;
  while (Samples::Clock::now() < end) {
    take_turn(floor_samples, by_floor);
    take_turn(dlock_samples, by_dlock);
  }
  print("floor", floor_samples);
  print("dlock", dlock_samples);
  std::printf("one thread, p50 ratio %.2f   p99 ratio %.2f\n\n",
              dlock_samples.percentile(0.5) / floor_samples.percentile(0.5),
              dlock_samples.percentile(0.99) / floor_samples.percentile(0.99));
}

}  // namespace bench
