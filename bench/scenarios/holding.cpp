#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "bench/measure/usage.hpp"
#include "bench/scenarios/pairs.hpp"
#include "bench/scenarios/parts.hpp"
#include "bench/scenarios/scenario.hpp"
#include "torture/rig/pause.hpp"

namespace dlock::bench {

namespace {

using std::chrono::nanoseconds;

constexpr std::chrono::seconds lease_time{2};
// A renewal is due every third of the lease, and those of leases that were taken together are due together: a shorter
// time would see all of them or none. The first such time after the leases were taken is not measured: it has fewer
// renewals than the others, and whatever a backend does once for each lock that is held for longer than a moment.
constexpr nanoseconds renewal_time = nanoseconds(lease_time) / 3;
// At a time. All at once, the last ones would be granted when their lease is half over.
constexpr std::size_t most_under_way = 64;
// For all of them together, one after the other.
constexpr std::chrono::microseconds usual_acquire_and_release{300};

// The answers to asynchronous calls, some of which are under way at a time.
class Answers {
 public:
  // Waits for room for one more; false: a stop was requested before.
  bool begin(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    const bool room = changed_.wait(lock, stop, [this] { return under_way_ < most_under_way; });
    if (room) ++under_way_;
    return room;
  }
  void end(const std::string& failure) {
    const std::scoped_lock lock(mutex_);
    --under_way_;
    if (failure_.empty()) failure_ = failure;
    changed_.notify_all();
  }
  // Waits for all. Throws if one was a failure.
  void finish() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return under_way_ == 0; });
    if (!failure_.empty()) throw std::runtime_error(failure_);
  }

 private:
  std::mutex mutex_;  // guards what follows
  std::condition_variable_any changed_;
  std::size_t under_way_ = 0;
  std::string failure_;  // the first
};

// A client and the leases that it holds.
class Bundle {
 public:
  Bundle(const Target& target, std::size_t count, std::stop_token stop)
      : stop_(std::move(stop)), leases_(count), client_(target.connect(count, {.lease = lease_time})) {
    granted_ = bench::granted_lease(client_, lock_name("holding/first"), {.cancel = stop_});
  }

  [[nodiscard]] std::chrono::milliseconds granted_lease() const { return granted_; }

  // False: a stop was requested before all were taken.
  bool acquire() {
    for (std::size_t i = 0; i < leases_.size() && answers_.begin(stop_); ++i) {
      client_.make_lock(lock_name("holding/" + std::to_string(i)))
          .async_acquire({.cancel = stop_}, [this, i](std::error_code ec, Lease lease) {
            leases_[i] = std::move(lease);
            const bool failed = ec && !(ec == errc::cancelled && stop_.stop_requested());
            answers_.end(failed ? "an acquire failed: " + ec.message() : "");
          });
    }
    answers_.finish();
    return !stop_.stop_requested();
  }
  // Throws if one of them was lost.
  void release() {
    for (Lease& lease : leases_) {
      if (!lease.has_value()) continue;
      (void)answers_.begin({});
      lease.async_release([this](std::error_code ec, bool was_ours) {
        answers_.end(ec ? "a release failed: " + ec.message() : was_ours ? "" : "a lease was lost while it was held");
      });
    }
    answers_.finish();
  }

 private:
  std::stop_token stop_;
  std::chrono::milliseconds granted_{0};
  Answers answers_;
  std::vector<Lease> leases_;
  Client client_;  // destroyed first: afterwards, no handler runs that could use the other members
};

// What is held while nothing else happens. False: a stop was requested.
bool watch(Target& target, const Plan& plan, std::size_t count, Collector& collector, const std::stop_token& stop) {
  if (!rig::pause(renewal_time, stop)) return false;
  const auto operations_before = target.operations();
  const auto counted_before = Clock::now();
  const auto processor_before = processor_time();
  const auto start = Clock::now();
  if (!rig::pause(std::max<nanoseconds>(plan.round, renewal_time), stop)) return false;
  const std::chrono::duration<double> taken = Clock::now() - start;
  const std::chrono::duration<double> processor_taken = processor_time() - processor_before;
  const auto operations_after = target.operations();
  const std::chrono::duration<double> counted = Clock::now() - counted_before;
  collector.add(quantity::client_cpu_share, 100 * processor_taken.count() / taken.count());
  if (operations_before && operations_after) {
    const double operations = operations_after->carried_out - operations_before->carried_out;
    collector.add(quantity::operations, operations / static_cast<double>(count) / counted.count());
  }
  return true;
}

// With memory://, this process has the service's side of each lock, too; it is part of the figure.
void run_repeat(Target& target, const Plan& plan, std::size_t count, std::optional<Collector>& collector,
                const std::stop_token& stop) {
  Bundle bundle(target, count, stop);
  if (!collector) {
    const auto lease_ms = static_cast<double>(bundle.granted_lease().count());
    const Parameters parameters{{parameter::leases, static_cast<double>(count)}, {parameter::lease_ms, lease_ms}};
    collector.emplace(target, Subject{scenario::holding, parameters}, Who::dlock);
  }
  const double memory_before = allocated_bytes();
  const bool complete = bundle.acquire();
  const double memory = allocated_bytes() - memory_before;
  if (complete && watch(target, plan, count, *collector, stop)) {
    collector->add(quantity::memory, memory / static_cast<double>(count));
  }
  bundle.release();
}

std::vector<Measurement> measure_holding(Target& target, const Plan& plan, std::size_t count,
                                         const std::stop_token& stop) {
  std::optional<Collector> collector;
  for (int repeat = 0; repeat < plan.repeats && !stop.stop_requested(); ++repeat) {
    try {
      run_repeat(target, plan, count, collector, stop);
    } catch (const Error& error) {
      if (error.code() != errc::cancelled || !stop.stop_requested()) throw;
    }
  }
  return collector ? measurements_of({&*collector, 1}) : std::vector<Measurement>();
}

}  // namespace

std::vector<Step> holding_steps(Target& target, const Plan& plan) {
  const std::size_t count = most_possible(target, plan.leases);
  if (count == 0) return {};
  const nanoseconds round = std::max<nanoseconds>(plan.round, renewal_time);
  return {{.what = "holding " + std::to_string(count) + (count == 1 ? " lease" : " leases"),
           .scenario = scenario::holding,
           .expected = plan.repeats * (renewal_time + round + static_cast<int>(count) * usual_acquire_and_release),
           .run = [&target, &plan, count](const std::stop_token& stop) {
             return measure_holding(target, plan, count, stop);
           }}};
}

}  // namespace dlock::bench
