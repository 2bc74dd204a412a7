#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/measure/samples.hpp"
#include "service.hpp"

namespace bench {

namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

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
    const auto end = std::chrono::steady_clock::now() + 20us;
    while (std::chrono::steady_clock::now() < end) continue;
  }
};

// A lease, and how long after valid_until() its loss was signalled; below zero: before.
class Watched {
 public:
  explicit Watched(dlock::Lease lease)
      : lease_(std::move(lease)), on_loss_(lease_.lost(), [this] { late_ = since_end(dlock::LeaseClock::now()); }) {}

  [[nodiscard]] bool signalled() const { return late_.load() != not_signalled; }
  // None: it can still be relied on. A signal that has not come yet is as late as it is now.
  [[nodiscard]] std::optional<nanoseconds> lateness(dlock::TimePoint now) const {
    const nanoseconds late = late_;
    if (late != not_signalled) return late;
    return since_end(now) > 0ns ? std::optional(since_end(now)) : std::nullopt;
  }

 private:
  [[nodiscard]] nanoseconds since_end(dlock::TimePoint now) const { return now - lease_.valid_until(); }

  static constexpr nanoseconds not_signalled = nanoseconds::max();
  std::atomic<nanoseconds> late_{not_signalled};
  dlock::Lease lease_;
  std::stop_callback<std::function<void()>> on_loss_;
};

struct Losses {
  dlock::bench::Samples lateness;
  std::size_t signalled = 0;
};

// Answers how many of these were lost.
std::size_t add_losses(const std::deque<Watched>& leases, Losses& losses) {
  const auto now = dlock::LeaseClock::now();
  const std::size_t before = losses.lateness.count();
  for (const Watched& each : leases) {
    if (each.signalled()) ++losses.signalled;
    if (const auto late = each.lateness(now)) losses.lateness.add(*late);
  }
  return losses.lateness.count() - before;
}

// Renews 10,000 leases of 100 ms for a slow observer while eight callers are busy, and takes one more each millisecond
// that ends by itself.
void late_losses(benchmark::State& state) {
  constexpr std::size_t count = 10'000;
  constexpr std::size_t busy_callers = 8;
  constexpr auto lease = 100ms;
  constexpr auto observed = 3s;
  for (auto _ : state) {
    std::deque<Watched> kept;   // renewed
    std::deque<Watched> fixed;  // not renewed
    // Goes first: what it makes lost then is counted no more.
    const dlock::Client client = dlock::connect("memory://", {.observer = std::make_shared<SlowObserver>()});
    for (std::size_t i = 0; i < count; ++i) {
      kept.emplace_back(client.make_lock("late/kept/" + std::to_string(i)).acquire({.lease = lease}));
    }
    std::vector<std::jthread> callers;
    for (std::size_t i = 0; i < busy_callers; ++i) {
      callers.emplace_back(
          [lock = client.make_lock("late/busy/" + std::to_string(i))](const std::stop_token& stop) mutable {
            while (!stop.stop_requested()) (void)lock.acquire().release();
          });
    }
    const dlock::Stats before = client.stats();
    const auto begin = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() < begin + observed) {
      const std::string name = "late/fixed/" + std::to_string(fixed.size());
      fixed.emplace_back(client.make_lock(name).acquire({.lease = lease, .renew = false}));
      std::this_thread::sleep_for(1ms);
    }
    const dlock::Stats after = client.stats();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;

    Losses losses;
    state.counters["kept_lost"] = static_cast<double>(add_losses(kept, losses));
    state.counters["fixed_lost"] = static_cast<double>(add_losses(fixed, losses));
    state.counters["signalled"] = static_cast<double>(losses.signalled);
    state.counters["late_p50_us"] = losses.lateness.percentile(0.5);
    state.counters["late_p99_us"] = losses.lateness.percentile(0.99);
    state.counters["late_max_us"] = losses.lateness.longest();
    state.counters["renewals_per_second"] = static_cast<double>(after.renewed - before.renewed) / took.count();
    state.counters["pairs_per_second"] = static_cast<double>(after.released - before.released) / took.count();
    state.counters["events_dropped"] = static_cast<double>(after.events_dropped - before.events_dropped);
  }
}

}  // namespace

void register_late_losses() {
  benchmark::RegisterBenchmark("memory/keeper/late_losses", late_losses)->Iterations(1)->UseRealTime();
}

}  // namespace bench
