#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <dlock/dlock.hpp>

#include "samples.hpp"
#include "zookeeper/measurements.hpp"

namespace bench {

namespace {

constexpr std::size_t waiter_counts[] = {8, 32, 128, 256};

// All of one run: sessions that take turns at one lock, each of them in the queue again as soon as it has let go.
class Crowd {
 public:
  Crowd(const Service& service, const std::string& strategy, std::size_t size) : turns_(size) {
    for (std::size_t i = 0; i < size; ++i) {
      clients_.push_back(dlock::connect(service.url(strategy)));
      locks_.push_back(std::make_unique<dlock::DistributedLock>(clients_.back().lock("herd")));
    }
  }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;
  ~Crowd() {
    std::unique_lock lock(mutex_);
    stopping_ = true;
    idle_.wait(lock, [this] { return busy_ == 0; });
  }

  void start() {
    busy_ = locks_.size();
    for (std::size_t i = 0; i < locks_.size(); ++i) queue_up(i);
  }
  void await_turns(std::uint64_t count) {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return total_ >= count; });
  }
  [[nodiscard]] std::uint64_t turns() {
    const std::scoped_lock lock(mutex_);
    return total_;
  }
  void begin_measuring() {
    const std::scoped_lock lock(mutex_);
    latency_ = {};
    std::fill(turns_.begin(), turns_.end(), 0);
  }
  [[nodiscard]] Samples latency() {
    const std::scoped_lock lock(mutex_);
    return latency_;
  }
  [[nodiscard]] std::vector<std::uint64_t> turns_each() {
    const std::scoped_lock lock(mutex_);
    return turns_;
  }

 private:
  void queue_up(std::size_t i) {
    locks_[i]->async_acquire({}, [this, i](std::error_code ec, dlock::Lease lease) {
      if (ec) return leave();
      {
        const std::scoped_lock lock(mutex_);
        const auto now = Samples::Clock::now();
        if (released_ != Samples::Clock::time_point()) latency_.add(now - released_);
        ++total_;
        ++turns_[i];
        idle_.notify_all();
        released_ = Samples::Clock::now();
      }
      lease.async_release([this, i](std::error_code /*ec*/, bool /*was_ours*/) {
        if (stopping()) return leave();
        queue_up(i);
      });
    });
  }
  [[nodiscard]] bool stopping() {
    const std::scoped_lock lock(mutex_);
    return stopping_;
  }
  void leave() {
    const std::scoped_lock lock(mutex_);
    --busy_;
    idle_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable idle_;
  bool stopping_ = false;
  std::size_t busy_ = 0;
  std::uint64_t total_ = 0;
  std::vector<std::uint64_t> turns_;
  Samples latency_;
  Samples::Clock::time_point released_;
  std::vector<dlock::Client> clients_;
  std::vector<std::unique_ptr<dlock::DistributedLock>> locks_;
};

struct Figures {
  double received;
  double sent;
  double events;
  double turns;
  Samples::Clock::time_point at;
};

Figures figures(const Service& service, Crowd& crowd) {
  return {
      .received = service.figure("zk_packets_received"),
      .sent = service.figure("zk_packets_sent"),
      .events = service.figure("zk_sum_node_deleted_watch_count") + service.figure("zk_sum_node_created_watch_count") +
                service.figure("zk_sum_node_changed_watch_count") + service.figure("zk_sum_node_children_watch_count"),
      .turns = static_cast<double>(crowd.turns()),
      .at = Samples::Clock::now()};
}

void run(const Service& service, const std::string& strategy, std::size_t waiters, std::chrono::milliseconds length) {
  Crowd crowd(service, strategy, waiters);
  crowd.start();
  crowd.await_turns(2 * waiters);  // until all of them have come
  const Figures before = figures(service, crowd);
  crowd.begin_measuring();
  std::this_thread::sleep_for(length / 2);
  const double watches = service.figure("zk_watch_count");
  std::this_thread::sleep_for(length / 2);
  const Figures after = figures(service, crowd);
  Samples latency = crowd.latency();
  const std::vector<std::uint64_t> each = crowd.turns_each();
  const double turns = std::max(after.turns - before.turns, 1.0);
  std::printf(
      "herd, %-15s %3zu waiters  %6.2f events  %6.2f received  %6.2f sent  %6.1f hand-offs/s  p50 %8.1f us  "
      "p99 %9.1f us  %4.0f watches  turns %llu..%llu\n",
      strategy.c_str(), waiters, (after.events - before.events) / turns, (after.received - before.received) / turns,
      (after.sent - before.sent) / turns, turns / std::chrono::duration<double>(after.at - before.at).count(),
      latency.percentile(0.5), latency.percentile(0.99), watches,
      static_cast<unsigned long long>(*std::min_element(each.begin(), each.end())),
      static_cast<unsigned long long>(*std::max_element(each.begin(), each.end())));
}

}  // namespace

void measure_herd(const Service& service, const Plan& plan) {
  for (const std::string strategy : {"sequential", "sequential-herd", "ephemeral"}) {
    for (const std::size_t waiters : waiter_counts) run(service, strategy, waiters, plan.rounds * plan.round);
    std::printf("\n");
  }
}

}  // namespace bench
