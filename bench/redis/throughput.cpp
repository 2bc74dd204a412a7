#include <atomic>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <latch>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <dlock/dlock.hpp>

#include "redis/floor.hpp"
#include "redis/measurements.hpp"
#include "samples.hpp"

namespace bench {

namespace {

constexpr std::size_t thread_counts[] = {8, 64, 256};

// Makes what one thread does over and over.
using MakeWorker = std::function<std::function<void()>(std::size_t thread)>;

struct Rate {
  double per_second;
  double server_us;  // processor time of the server for each
};

double server_seconds(dlock::test::RedisServer& server) {
  return std::stod(server.info("cpu", "used_cpu_user")) + std::stod(server.info("cpu", "used_cpu_sys"));
}

Rate run_round(dlock::test::RedisServer& server, std::size_t threads, std::chrono::milliseconds length,
               const MakeWorker& make) {
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> total{0};
  std::latch ready(static_cast<std::ptrdiff_t>(threads) + 1);
  std::vector<std::jthread> running;
  for (std::size_t i = 0; i < threads; ++i) {
    running.emplace_back([&, i] {
      const auto work = make(i);
      work();  // connects
      ready.arrive_and_wait();
      std::uint64_t done = 0;
      for (; !stop.load(std::memory_order_relaxed); ++done) work();
      total.fetch_add(done);
    });
  }
  ready.arrive_and_wait();
  const double cpu_before = server_seconds(server);
  const auto start = Samples::Clock::now();
  std::this_thread::sleep_for(length);
  stop = true;
  running.clear();
  const double seconds = std::chrono::duration<double>(Samples::Clock::now() - start).count();
  const double cpu = server_seconds(server) - cpu_before;
  const auto count = static_cast<double>(total.load());
  return {.per_second = count / seconds, .server_us = cpu * 1e6 / count};
}

std::function<void()> floor_worker(std::uint16_t port, std::size_t thread) {
  auto floor = std::make_shared<Floor>(port);
  return [floor, key = "floor/" + std::to_string(thread)] {
    static const std::string token = "0123456789abcdef0123456789abcdef";
    if (!floor->acquire(key, token) || !floor->release(key, token)) throw std::runtime_error("the floor lost a lock");
  };
}

std::function<void()> dlock_worker(const dlock::Client& client, std::size_t thread) {
  auto lock = std::make_shared<dlock::DistributedLock>(client.lock("distinct/" + std::to_string(thread)));
  return [lock] {
    dlock::Lease lease = lock->acquire();
    if (!lease.release()) throw std::runtime_error("dlock lost a lock");
  };
}

}  // namespace

void measure_throughput(dlock::test::RedisServer& server, const Plan& plan) {
  const dlock::Client client = dlock::connect(server.url());
  for (const std::size_t threads : thread_counts) {
    std::vector<double> floor_rates;
    std::vector<double> dlock_rates;
    std::vector<double> ratios;
    std::vector<double> floor_cpu;
    std::vector<double> dlock_cpu;
    for (int i = 0; i < plan.rounds; ++i) {
      const Rate floor = run_round(server, threads, plan.round,
                                   [&](std::size_t thread) { return floor_worker(server.port(), thread); });
      const Rate dlock =
          run_round(server, threads, plan.round, [&](std::size_t thread) { return dlock_worker(client, thread); });
      floor_rates.push_back(floor.per_second);
      dlock_rates.push_back(dlock.per_second);
      ratios.push_back(dlock.per_second / floor.per_second);
      floor_cpu.push_back(floor.server_us);
      dlock_cpu.push_back(dlock.server_us);
    }
    std::printf("%3zu threads, floor  %8.0f pairs/s   server %5.1f us each\n", threads, median(floor_rates),
                median(floor_cpu));
    std::printf("%3zu threads, dlock  %8.0f pairs/s   server %5.1f us each\n", threads, median(dlock_rates),
                median(dlock_cpu));
    std::printf("%3zu threads, throughput ratio %.2f\n\n", threads, median(ratios));
  }
}

}  // namespace bench
