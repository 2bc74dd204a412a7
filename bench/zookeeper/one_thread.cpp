#include <cstdio>
#include <stdexcept>
#include <string>

#include <dlock/dlock.hpp>

#include "samples.hpp"
#include "zookeeper/floor.hpp"
#include "zookeeper/measurements.hpp"

namespace bench {

namespace {

constexpr int warm_up = 100;

}  // namespace

void measure_one_thread(const Service& service, const Plan& plan) {
  const Floor resolving(service.addresses, Floor::Resolution::by_default);
  const Floor floor(service.addresses, Floor::Resolution::never);
  const std::string parent = "/floor/one-thread";
  floor.make_parent(parent);
  const dlock::Client client = dlock::connect(service.url("sequential"));
  dlock::DistributedLock lock = client.lock("one-thread");
  Samples by_default;
  Samples by_floor;
  Samples by_dlock;
  for (int i = 0; i < plan.rounds; ++i) {
    take_turn(by_default, warm_up, plan.round, [&] { resolving.release(resolving.acquire(parent)); });
    take_turn(by_dlock, warm_up, plan.round, [&] {
      dlock::Lease lease = lock.acquire();
      if (!lease.release()) throw std::runtime_error("dlock lost a lock");
    });
    take_turn(by_floor, warm_up, plan.round, [&] { floor.release(floor.acquire(parent)); });
  }
  print_one_thread("C client with its defaults", by_default);
  print_one_thread("C client without re-resolution", by_floor);
  print_one_thread("dlock", by_dlock);
  const double p50 = by_dlock.percentile(0.5);
  std::printf("one thread, p50 ratio %.2f to the C client with its defaults, %.2f to it without re-resolution\n\n",
              p50 / by_default.percentile(0.5), p50 / by_floor.percentile(0.5));
}

}  // namespace bench
