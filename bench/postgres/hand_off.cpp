#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <dlock/dlock.hpp>

#include "postgres/measurements.hpp"
#include "samples.hpp"

namespace bench {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t waiter_counts[] = {2, 8, 32};
// Waiters are spread over so many clients, as over processes.
constexpr std::size_t most_clients = 8;
constexpr auto hold = 1ms;

struct Result {
  Samples latency;
  double wal_each = 0;
  std::uint64_t fewest = 0;  // turns of the waiter that had the fewest
  std::uint64_t most = 0;
};

// What the holders share. The lock itself orders the accesses, except to `turns`.
struct Shared {
  Samples::Clock::time_point released{};
  Samples latency;
  std::mutex mutex;
  std::condition_variable_any changed;
  std::uint64_t turns = 0;

  void begin_turn() {
    const std::scoped_lock lock(mutex);
    ++turns;
    changed.notify_all();
  }
  [[nodiscard]] std::uint64_t turns_so_far() {
    const std::scoped_lock lock(mutex);
    return turns;
  }
  // Until somebody else has the lock, so that whoever released it does not take it right back.
  void await_next_turn(std::uint64_t mine, const std::stop_token& stop) {
    std::unique_lock lock(mutex);
    (void)changed.wait(lock, stop, [&] { return turns > mine; });
  }
};

// Returns how many turns it had.
std::uint64_t take_turns(dlock::DistributedLock& lock, Shared& shared, const std::stop_token& stop) {
  for (std::uint64_t turns = 0;; ++turns) {
    std::error_code ec;
    dlock::Lease lease = lock.acquire({.cancel = stop}, ec);
    if (ec) {
      if (!stop.stop_requested()) std::fprintf(stderr, "hand-off: %s\n", ec.message().c_str());
      return turns;
    }
    const auto now = Samples::Clock::now();
    if (shared.released != Samples::Clock::time_point()) shared.latency.add(now - shared.released);
    shared.begin_turn();
    std::this_thread::sleep_for(hold);
    const std::uint64_t mine = shared.turns_so_far();
    shared.released = Samples::Clock::now();
    (void)lease.release(ec);  // a lost lease would show as a hand-off that took long
    shared.await_next_turn(mine, stop);
  }
}

double wal_position(dlock::test::PostgresServer& server) {
  return std::stod(server.value("SELECT pg_current_wal_insert_lsn() - '0/0'"));
}

Result run(dlock::test::PostgresServer& server, const std::string& strategy, std::size_t waiters,
           std::chrono::milliseconds length) {
  const std::size_t client_count = std::min(waiters, most_clients);
  // Where waiting takes a connection: one for each of a client's waiters, and a few that it works with.
  const std::size_t connections = waiters / client_count + 6;
  std::vector<dlock::Client> clients;
  for (std::size_t i = 0; i < client_count; ++i) {
    clients.push_back(dlock::connect(url_of(server, strategy, connections)));
  }
  Shared shared;
  std::vector<std::uint64_t> turns(waiters + 1);  // one of them holds
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i <= waiters; ++i) {
    threads.emplace_back([&, i](const std::stop_token& stop) {
      dlock::DistributedLock lock = clients[i % clients.size()].lock("hand-off");
      turns[i] = take_turns(lock, shared, stop);
    });
  }
  std::this_thread::sleep_for(length / 4);  // until all of them wait
  const double wal_before = wal_position(server);
  const auto turns_before = shared.turns_so_far();
  std::this_thread::sleep_for(length);
  const double wal_more = wal_position(server) - wal_before;
  const auto turns_more = static_cast<double>(shared.turns_so_far() - turns_before);
  for (std::jthread& each : threads) each.request_stop();
  threads.clear();
  return {.latency = std::move(shared.latency),
          .wal_each = wal_more / std::max(turns_more, 1.0),
          .fewest = *std::min_element(turns.begin(), turns.end()),
          .most = *std::max_element(turns.begin(), turns.end())};
}

}  // namespace

void measure_hand_off(dlock::test::PostgresServer& server, const Plan& plan) {
  for (const std::string& strategy : plan.strategies) {
    for (const std::size_t waiters : waiter_counts) {
      Result result = run(server, strategy, waiters, 2 * plan.rounds * plan.round);
      std::printf(
          "hand-off, %-10s %2zu waiters   p50 %8.1f us   p99 %9.1f us   %6.0f bytes of WAL each   turns %llu..%llu\n",
          strategy.c_str(), waiters, result.latency.percentile(0.5), result.latency.percentile(0.99), result.wal_each,
          static_cast<unsigned long long>(result.fewest), static_cast<unsigned long long>(result.most));
    }
    std::printf("\n");
  }
}

}  // namespace bench
