#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <latch>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <dlock/dlock.hpp>

#include "samples.hpp"
#include "zookeeper/floor.hpp"
#include "zookeeper/measurements.hpp"

namespace bench {

namespace {

constexpr std::size_t threads = 64;

// What one thread does over and over.
using Work = std::function<void()>;

double run_round(std::chrono::milliseconds length, const std::vector<Work>& works) {
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> total{0};
  std::latch ready(static_cast<std::ptrdiff_t>(works.size()) + 1);
  std::vector<std::jthread> running;
  for (const Work& work : works) {
    running.emplace_back([&] {
      work();  // connects, and makes the nodes above
      ready.arrive_and_wait();
      std::uint64_t done = 0;
      for (; !stop.load(std::memory_order_relaxed); ++done) work();
      total.fetch_add(done);
    });
  }
  ready.arrive_and_wait();
  const auto start = Samples::Clock::now();
  std::this_thread::sleep_for(length);
  stop = true;
  running.clear();
  return static_cast<double>(total.load()) / std::chrono::duration<double>(Samples::Clock::now() - start).count();
}

Work floor_work(const std::shared_ptr<Floor>& floor, std::size_t thread) {
  const std::string parent = "/floor/thread-" + std::to_string(thread);
  floor->make_parent(parent);
  return [floor, parent] { floor->release(floor->acquire(parent)); };
}

Work dlock_work(const dlock::Client& client, std::size_t thread) {
  auto lock = std::make_shared<dlock::DistributedLock>(client.lock("thread/" + std::to_string(thread)));
  return [lock] {
    dlock::Lease lease = lock->acquire();
    if (!lease.release()) throw std::runtime_error("dlock lost a lock");
  };
}

struct Contestant {
  const char* name;
  std::vector<Work> works;
  std::vector<double> rates = {};
};

}  // namespace

void measure_throughput(const Service& service, const Plan& plan) {
  using Resolution = Floor::Resolution;
  const dlock::Client client = dlock::connect(service.url("sequential"));
  Contestant defaults{"C client with its defaults, a session each", {}};
  Contestant shared{"C client with its defaults, one session", {}};
  Contestant tuned{"C client without re-resolution, a session each", {}};
  Contestant ours{"dlock, one client", {}};
  const auto one = std::make_shared<Floor>(service.addresses, Resolution::by_default);
  for (std::size_t i = 0; i < threads; ++i) {
    defaults.works.push_back(floor_work(std::make_shared<Floor>(service.addresses, Resolution::by_default), i));
    shared.works.push_back(floor_work(one, i));
    tuned.works.push_back(floor_work(std::make_shared<Floor>(service.addresses, Resolution::never), i));
    ours.works.push_back(dlock_work(client, i));
  }
  std::vector<Contestant*> all = {&defaults, &ours, &shared, &tuned};
  for (int i = 0; i < plan.rounds; ++i) {
    for (Contestant* each : all) each->rates.push_back(run_round(plan.round, each->works));
  }
  for (const Contestant* each : all) {
    std::printf("%zu threads, %-47s %8.0f pairs/s\n", threads, each->name, median(each->rates));
  }
  const auto ratio = [&](const Contestant& floor) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < floor.rates.size(); ++i) ratios.push_back(ours.rates[i] / floor.rates[i]);
    return median(ratios);
  };
  std::printf(
      "%zu threads, throughput ratio %.2f to the C client with its defaults (%.2f on one session), "
      "%.2f to it without re-resolution\n\n",
      threads, ratio(defaults), ratio(shared), ratio(tuned));
}

}  // namespace bench
