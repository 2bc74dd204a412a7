#include <chrono>
#include <cstddef>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/measure/usage.hpp"
#include "service.hpp"

namespace bench {

namespace {

using dlock::bench::allocated_bytes;

constexpr std::size_t count = 10'000;

// With memory://, the process holds the service's side of each lock, too; it is part of the numbers.
void held_leases(benchmark::State& state) {
  for (auto _ : state) {
    const dlock::Client client = dlock::connect("memory://");
    std::vector<dlock::Lease> leases;
    leases.reserve(count);
    const double before = allocated_bytes();
    for (std::size_t i = 0; i < count; ++i) {
      leases.push_back(client.make_lock("footprint/held/" + std::to_string(i)).acquire());
    }
    state.counters["bytes_per_lease"] = (allocated_bytes() - before) / static_cast<double>(count);
  }
}

void waiting_acquires(benchmark::State& state) {
  for (auto _ : state) {
    const dlock::Client client = dlock::connect("memory://");
    dlock::DistributedLock lock = client.make_lock("footprint/waiting");
    const dlock::Lease holder = lock.acquire();
    const double before = allocated_bytes();
    for (std::size_t i = 0; i < count; ++i) lock.async_acquire({}, [](std::error_code, dlock::Lease) {});
    while (client.stats().waiting < count) std::this_thread::yield();
    // Answered after everything that was asked before: now all of them stand in the queue.
    benchmark::DoNotOptimize(lock.try_acquire());
    state.counters["bytes_per_waiter"] = (allocated_bytes() - before) / static_cast<double>(count);
  }
}

}  // namespace

void register_footprint() {
  benchmark::RegisterBenchmark("memory/footprint/held_leases", held_leases)->Iterations(1)->UseRealTime();
  benchmark::RegisterBenchmark("memory/footprint/waiting_acquires", waiting_acquires)->Iterations(1)->UseRealTime();
}

}  // namespace bench
