#include "bench/scenarios/holding.hpp"

#include <algorithm>
#include <mutex>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/measure/usage.hpp"
#include "bench/scenarios/work.hpp"
#include "torture/rig/pause.hpp"

namespace dlock::bench {

namespace {

using std::chrono::nanoseconds;

constexpr std::chrono::seconds lease_time{2};
// A renewal is due every third of the lease, and leases acquired together are renewed together: a shorter time would
// include all renewals or none. The first third after the acquires is not measured: it has fewer renewals than the
// others, and the backend's work for each lock that is held for longer than a moment.
constexpr nanoseconds renewal_time = nanoseconds(lease_time) / 3;
// Concurrent acquires. With all at once, half of the last leases would have passed when they are granted.
constexpr int most_under_way = 64;

nanoseconds observed(const Plan& plan) {
  return std::max<nanoseconds>(plan.round, renewal_time);
}

// A client and its leases.
class Bundle {
 public:
  Bundle(const Target& target, std::size_t count, std::stop_token stop)
      : stop_(std::move(stop)), leases_(count), client_(target.connect(count, {.lease = lease_time})) {}

  [[nodiscard]] std::chrono::milliseconds granted() const {
    return granted_lease(client_, lock_name("held", leases_.size()), {.cancel = stop_});
  }
  // False: a stop was requested before all were acquired.
  bool acquire() {
    for (std::size_t i = 0; i < leases_.size() && !stop_.stop_requested(); ++i) {
      under_way_.acquire();
      client_.make_lock(lock_name("held", i))
          .async_acquire({.cancel = stop_}, [this, i](std::error_code ec, Lease lease) {
            leases_[i] = std::move(lease);
            const bool failed = ec && !(ec == errc::cancelled && stop_.stop_requested());
            end(failed ? "an acquire failed: " + ec.message() : "");
          });
    }
    finish();
    return !stop_.stop_requested();
  }
  // Throws if one of them was lost.
  void release() {
    for (Lease& lease : leases_) {
      if (!lease.has_value()) continue;
      under_way_.acquire();
      lease.async_release([this](std::error_code ec, bool was_ours) {
        end(ec ? "a release failed: " + ec.message() : was_ours ? "" : "a lease was lost while it was held");
      });
    }
    finish();
  }

 private:
  void end(const std::string& failure) {
    {
      const std::scoped_lock lock(mutex_);
      if (failure_.empty()) failure_ = failure;
    }
    under_way_.release();
  }
  // Waits for all. Throws if one was a failure.
  void finish() {
    for (int i = 0; i < most_under_way; ++i) under_way_.acquire();
    under_way_.release(most_under_way);
    const std::scoped_lock lock(mutex_);
    if (!failure_.empty()) throw std::runtime_error(failure_);
  }

  std::stop_token stop_;
  std::counting_semaphore<most_under_way> under_way_{most_under_way};
  std::mutex mutex_;
  std::string failure_;  // the first; guarded
  std::vector<Lease> leases_;
  Client client_;  // destroyed first: afterwards, no handler runs that could use the other members
};

// False: a stop was requested.
bool observe(Target& target, const Plan& plan, std::size_t names, Round& round, const std::stop_token& stop) {
  if (!rig::pause(renewal_time, stop)) return false;
  const auto operations_before = target.operations();
  const auto counted_before = Clock::now();
  const auto processor_before = usage().processor_time;
  const auto start = Clock::now();
  if (!rig::pause(observed(plan), stop)) return false;
  round.window.length = Clock::now() - start;
  round.window.processor_time = usage().processor_time - processor_before;
  const auto operations_after = target.operations();
  const std::chrono::duration<double> counted = Clock::now() - counted_before;
  if (operations_before && operations_after) {
    const double operations = operations_after->carried_out - operations_before->carried_out;
    round.operations = operations / static_cast<double>(names) / counted.count();
  }
  return true;
}

}  // namespace

nanoseconds time_to_hold(const Plan& plan) {
  return renewal_time + observed(plan);
}

// With memory://, this process also has the service's side of each lock, which is part of the figure.
Rounds holding(Target& target, const Plan& plan, std::size_t names) {
  return [&target, &plan, names](int /*repeat*/, const std::stop_token& stop) {
    Bundle bundle(target, names, stop);
    Round round;
    round.lease = bundle.granted();
    const double memory_before = allocated_bytes();
    const bool complete = bundle.acquire();
    round.memory = (allocated_bytes() - memory_before) / static_cast<double>(names);
    round.window.complete = complete && observe(target, plan, names, round, stop);
    bundle.release();
    return round;
  };
}

}  // namespace dlock::bench
