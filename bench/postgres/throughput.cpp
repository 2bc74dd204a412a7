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

#include "postgres/floor.hpp"
#include "postgres/measurements.hpp"
#include "samples.hpp"

namespace bench {

namespace {

constexpr std::size_t thread_counts[] = {8, 64};

// Makes what one thread does over and over.
using MakeWorker = std::function<std::function<void()>(std::size_t thread)>;

struct Rate {
  double per_second;
  double wal;  // bytes for each
};

double wal_position(dlock::test::PostgresServer& server) {
  return std::stod(server.value("SELECT pg_current_wal_insert_lsn() - '0/0'"));
}

Rate run_round(dlock::test::PostgresServer& server, std::size_t threads, std::chrono::milliseconds length,
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
  const double wal_before = wal_position(server);
  const auto start = Samples::Clock::now();
  std::this_thread::sleep_for(length);
  stop = true;
  running.clear();
  const double seconds = std::chrono::duration<double>(Samples::Clock::now() - start).count();
  const double wal = wal_position(server) - wal_before;
  const auto count = static_cast<double>(total.load());
  return {.per_second = count / seconds, .wal = wal / count};
}

std::function<void()> floor_worker(const dlock::test::PostgresServer& server, const std::string& strategy,
                                   std::size_t thread) {
  const std::shared_ptr<Floor> floor = make_floor(strategy, server.url(), "floor/" + std::to_string(thread));
  return [floor] {
    floor->acquire();
    floor->release();
  };
}

std::function<void()> dlock_worker(const dlock::Client& client, std::size_t thread) {
  auto lock = std::make_shared<dlock::DistributedLock>(client.lock("distinct/" + std::to_string(thread)));
  return [lock] {
    dlock::Lease lease = lock->acquire();
    if (!lease.release()) throw std::runtime_error("dlock lost a lock");
  };
}

void run(dlock::test::PostgresServer& server, const Plan& plan, const std::string& strategy, std::size_t threads) {
  // A lock of for-update has a connection of its own. The others get along with what they have by default.
  const dlock::Client client = dlock::connect(strategy == "for-update" ? url_of(server, strategy, threads + 8)
                                                                       : server.url("strategy=" + strategy));
  std::vector<double> floor_rates;
  std::vector<double> dlock_rates;
  std::vector<double> ratios;
  std::vector<double> floor_wal;
  std::vector<double> dlock_wal;
  for (int i = 0; i < plan.rounds; ++i) {
    const Rate floor = run_round(server, threads, plan.round,
                                 [&](std::size_t thread) { return floor_worker(server, strategy, thread); });
    const Rate dlock =
        run_round(server, threads, plan.round, [&](std::size_t thread) { return dlock_worker(client, thread); });
    floor_rates.push_back(floor.per_second);
    dlock_rates.push_back(dlock.per_second);
    ratios.push_back(dlock.per_second / floor.per_second);
    floor_wal.push_back(floor.wal);
    dlock_wal.push_back(dlock.wal);
  }
  std::printf("%2zu threads, %-10s  floor  %8.0f pairs/s   %5.0f bytes of WAL each\n", threads, strategy.c_str(),
              median(floor_rates), median(floor_wal));
  std::printf("%2zu threads, %-10s  dlock  %8.0f pairs/s   %5.0f bytes of WAL each\n", threads, strategy.c_str(),
              median(dlock_rates), median(dlock_wal));
  std::printf("%2zu threads, %-10s  throughput ratio %.2f\n\n", threads, strategy.c_str(), median(ratios));
}

}  // namespace

void measure_throughput(dlock::test::PostgresServer& server, const Plan& plan) {
  for (const std::string& strategy : plan.strategies) {
    for (const std::size_t threads : thread_counts) run(server, plan, strategy, threads);
  }
}

}  // namespace bench
