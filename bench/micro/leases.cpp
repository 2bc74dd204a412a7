#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/measure/samples.hpp"
#include "bench/measure/usage.hpp"
#include "micro.hpp"

namespace bench {

namespace {

using namespace std::chrono_literals;
using dlock::Client;
using dlock::Lease;
using std::chrono::nanoseconds;
using Seconds = std::chrono::duration<double>;
using Clock = std::chrono::steady_clock;

constexpr std::size_t count = 10'000;

Lease acquire(const Client& client, const char* what, std::size_t number, const dlock::AcquireOptions& options = {}) {
  return client.make_lock(what + std::to_string(number)).acquire(options);
}

// With memory://, the process also has the service's side of each lock, which is included in the numbers.
void held_leases(benchmark::State& state) {
  const Client client = dlock::connect("memory://");
  std::vector<Lease> leases;
  leases.reserve(count);
  const double before = dlock::bench::allocated_bytes();
  for (std::size_t i = 0; i < count; ++i) leases.push_back(acquire(client, "held/", i));
  state.counters["bytes_per_lease"] = (dlock::bench::allocated_bytes() - before) / static_cast<double>(count);
}

void waiting_acquires(benchmark::State& state) {
  const Client client = dlock::connect("memory://");
  dlock::DistributedLock lock = client.make_lock("waiting");
  const Lease holder = lock.acquire();
  const double before = dlock::bench::allocated_bytes();
  for (std::size_t i = 0; i < count; ++i) lock.async_acquire({}, [](std::error_code, Lease) {});
  while (client.stats().waiting < count) std::this_thread::yield();
  // Answered after all earlier requests: now all acquires are in the queue.
  benchmark::DoNotOptimize(lock.try_acquire());
  state.counters["bytes_per_waiter"] = (dlock::bench::allocated_bytes() - before) / static_cast<double>(count);
}

// Works for 20 us on each event.
class SlowObserver final : public dlock::Observer {
 public:
  void acquired(const dlock::AcquiredEvent&) override { work(); }
  void released(const dlock::ReleasedEvent&) override { work(); }
  void renewed(const dlock::RenewedEvent&) override { work(); }
  void lost(const dlock::LostEvent&) override { work(); }
  void warning(const dlock::WarningEvent&) override { work(); }

 private:
  static void work() {
    for (const auto end = Clock::now() + 20us; Clock::now() < end;) continue;
  }
};

// A lease, and the time from valid_until() to its loss signal; negative: before.
class Watched {
 public:
  explicit Watched(Lease lease)
      : lease_(std::move(lease)), on_loss_(lease_.lost(), [this] { late_ = since_end(dlock::LeaseClock::now()); }) {}

  [[nodiscard]] bool signalled() const { return late_.load() != not_signalled; }
  // Without a signal yet, the lateness so far.
  [[nodiscard]] nanoseconds lateness(dlock::TimePoint now) const { return signalled() ? late_.load() : since_end(now); }
  [[nodiscard]] bool ended(dlock::TimePoint now) const { return signalled() || since_end(now) > 0ns; }

 private:
  [[nodiscard]] nanoseconds since_end(dlock::TimePoint now) const { return now - lease_.valid_until(); }

  static constexpr nanoseconds not_signalled = nanoseconds::max();
  std::atomic<nanoseconds> late_{not_signalled};
  Lease lease_;
  std::stop_callback<std::function<void()>> on_loss_;
};

// Renews 10,000 leases of 100 ms for a slow observer while eight callers are busy. Each millisecond, it acquires
// another lease, which expires by itself.
void late_losses(benchmark::State& state) {
  constexpr std::size_t busy_callers = 8;
  constexpr auto lease = 100ms;
  std::deque<Watched> kept;   // renewed
  std::deque<Watched> fixed;  // not renewed
  // Destroyed first: losses caused by that are not counted.
  const Client client = dlock::connect("memory://", {.observer = std::make_shared<SlowObserver>()});
  for (std::size_t i = 0; i < count; ++i) kept.emplace_back(acquire(client, "kept/", i, {.lease = lease}));
  std::vector<std::jthread> callers;
  for (std::size_t i = 0; i < busy_callers; ++i) {
    callers.emplace_back([lock = client.make_lock("busy/" + std::to_string(i))](const std::stop_token& stop) mutable {
      while (!stop.stop_requested()) (void)lock.acquire().release();
    });
  }
  const dlock::Stats before = client.stats();
  const auto begin = Clock::now();
  while (Clock::now() < begin + 3s) {
    fixed.emplace_back(acquire(client, "fixed/", fixed.size(), {.lease = lease, .renew = false}));
    std::this_thread::sleep_for(1ms);
  }
  const dlock::Stats after = client.stats();
  const Seconds took = Clock::now() - begin;

  dlock::bench::Samples lateness;
  double signalled = 0;
  // Returns how many of these were lost.
  const auto add = [&, now = dlock::LeaseClock::now()](const std::deque<Watched>& leases) {
    const std::size_t others = lateness.count();
    for (const Watched& each : leases) {
      signalled += each.signalled() ? 1 : 0;
      if (each.ended(now)) lateness.add(each.lateness(now));
    }
    return static_cast<double>(lateness.count() - others);
  };
  state.counters["kept_lost"] = add(kept);
  state.counters["fixed_lost"] = add(fixed);
  state.counters["signalled"] = signalled;
  state.counters["late_p50_us"] = lateness.percentile(0.5);
  state.counters["late_p99_us"] = lateness.percentile(0.99);
  state.counters["late_max_us"] = lateness.longest();
  state.counters["renewals_per_second"] = static_cast<double>(after.renewed - before.renewed) / took.count();
  state.counters["pairs_per_second"] = static_cast<double>(after.released - before.released) / took.count();
  state.counters["events_dropped"] = static_cast<double>(after.events_dropped - before.events_dropped);
}

}  // namespace

void register_leases() {
  const auto add = [](const char* name, void (*run)(benchmark::State&)) {
    const auto once = [run](benchmark::State& state) {
      for (auto _ : state) run(state);
    };
    benchmark::RegisterBenchmark(name, once)->Iterations(1)->UseRealTime();
  };
  add("memory/footprint/held_leases", held_leases);
  add("memory/footprint/waiting_acquires", waiting_acquires);
  add("memory/keeper/late_losses", late_losses);
}

}  // namespace bench
