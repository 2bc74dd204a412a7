#include <cstddef>
#include <cstdint>
#include <latch>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "allocations.hpp"
#include "bench/measure/usage.hpp"
#include "micro.hpp"

namespace bench {

namespace {

using dlock::Client;
using dlock::DistributedLock;
using dlock::Lease;

// The resources that this process uses for each pair of a benchmark. Created before the loop, reported after it.
class UsedUp {
 public:
  explicit UsedUp(benchmark::State& state) : state_(state) {}

  // All threads wait for each other at both ends of the loop, so one of them can report for all.
  void report(std::int64_t pairs_of_each_thread) const {
    state_.SetItemsProcessed(pairs_of_each_thread);
    if (state_.thread_index() != 0) return;
    const auto add = [&](const char* what, std::uint64_t count) {
      state_.counters[what] = static_cast<double>(count) / static_cast<double>(pairs_of_each_thread * state_.threads());
    };
    const dlock::bench::Usage after = dlock::bench::usage();
    add("allocations", bench::allocations() - allocations_);
    add("voluntary_switches", after.voluntary_switches - before_.voluntary_switches);
    add("involuntary_switches", after.involuntary_switches - before_.involuntary_switches);
  }

 private:
  benchmark::State& state_;
  const dlock::bench::Usage before_ = dlock::bench::usage();
  const std::uint64_t allocations_ = bench::allocations();
};

void acquire_and_release(benchmark::State& state, DistributedLock lock) {
  const UsedUp used_up(state);
  for (auto _ : state) {
    Lease lease = lock.acquire();
    if (!lease.release()) state.SkipWithError("a lease was lost");
  }
  used_up.report(state.iterations());
}

void distinct_names(benchmark::State& state, const Client& client) {
  acquire_and_release(state, client.make_lock("distinct/" + std::to_string(state.thread_index())));
}

void try_while_busy(benchmark::State& state, const Client& client) {
  DistributedLock lock = client.make_lock("busy");
  const Lease holder = lock.acquire();
  for (auto _ : state) {
    if (lock.try_acquire()) state.SkipWithError("two holders of one lock");
  }
  state.SetItemsProcessed(state.iterations());
}

// The benchmark's argument is the number of concurrent acquires, each of its own name.
void asynchronous(benchmark::State& state, const Client& client) {
  const auto at_once = static_cast<std::size_t>(state.range(0));
  std::vector<DistributedLock> locks;
  for (std::size_t i = 0; i < at_once; ++i) locks.push_back(client.make_lock("asynchronous/" + std::to_string(i)));
  const UsedUp used_up(state);
  for (auto _ : state) {
    std::latch released(static_cast<std::ptrdiff_t>(at_once));
    for (DistributedLock& lock : locks) {
      lock.async_acquire({}, [&released](std::error_code, Lease lease) {
        lease.async_release([&released](std::error_code, bool) { released.count_down(); });
      });
    }
    released.wait();
  }
  used_up.report(state.iterations() * state.range(0));
}

}  // namespace

void register_acquire_release(const std::string& name, std::shared_ptr<const Client> client) {
  const auto add = [&](const char* what, void (*run)(benchmark::State&, const Client&)) {
    return benchmark::RegisterBenchmark((name + '/' + what).c_str(),
                                        [client, run](benchmark::State& state) { run(state, *client); })
        ->UseRealTime();
  };
  add("acquire_release/distinct_names", distinct_names)->Threads(1)->Threads(8)->Threads(64);
  add("acquire_release/async", asynchronous)->Arg(1)->Arg(64)->Arg(1000);
  add("try_while_busy", try_while_busy);
}

}  // namespace bench
