#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/measure/usage.hpp"
#include "service.hpp"

namespace bench {

namespace {

using namespace std::chrono_literals;
using dlock::bench::processor_time;
using Seconds = std::chrono::duration<double>;

// Leases a tenth as long as the default ones, so that a tenth of the time shows as many renewals.
void renew_10000_leases(benchmark::State& state) {
  constexpr std::size_t count = 10'000;
  constexpr auto lease = 3s;
  constexpr auto observed = 12s;
  constexpr double default_lease_is_longer_by = 10;
  for (auto _ : state) {
    const dlock::Client client = dlock::connect("memory://", {.lease = lease});
    std::vector<dlock::Lease> leases;
    leases.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      leases.push_back(client.make_lock("keeper/" + std::to_string(i)).acquire());
    }
    const auto wall_before = std::chrono::steady_clock::now();
    const auto before = processor_time();
    const dlock::Stats stats_before = client.stats();
    std::this_thread::sleep_for(observed);
    const dlock::Stats stats = client.stats();
    const double share = Seconds(processor_time() - before) / Seconds(std::chrono::steady_clock::now() - wall_before);

    state.counters["cpu_percent_lease_3s"] = 100 * share;
    state.counters["cpu_percent_lease_30s"] = 100 * share / default_lease_is_longer_by;
    state.counters["renewals"] = static_cast<double>(stats.renewed - stats_before.renewed);
    state.counters["lost"] = static_cast<double>(stats.lost);
  }
}

}  // namespace

void register_keeper() {
  benchmark::RegisterBenchmark("memory/keeper/renew_10000_leases", renew_10000_leases)->Iterations(1)->UseRealTime();
}

}  // namespace bench
