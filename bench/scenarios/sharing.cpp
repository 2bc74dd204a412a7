#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "bench/measure/random.hpp"
#include "bench/scenarios/pairs.hpp"
#include "bench/scenarios/parts.hpp"
#include "bench/scenarios/scenario.hpp"

namespace dlock::bench {

namespace {

constexpr int percentages[] = {95, 50};  // of calls that read
constexpr std::size_t crowds[] = {8, 64};
constexpr std::size_t readers = 8;  // that one writer waits for
constexpr std::uint32_t permits = 4;
constexpr std::size_t permit_callers = 64;
// How often the writer looks whether the readers are at it again.
constexpr std::chrono::microseconds next_question{100};

using MakeWork = std::function<Crowd::Work(const Client& client, std::size_t caller)>;
using Add = void (*)(Collector& collector, const Window& window);

void add_pairs(Collector& collector, const Window& window) {
  collector.add(quantity::throughput, window.per_second());
}

void add_waits(Collector& collector, const Window& window) {
  collector.add(window.samples, {quantity::p50, quantity::p99});
}

// Whether a call reads is thrown with dice that fall alike in each run.
MakeWork readers_and_writers(int percentage) {
  return [percentage](const Client& client, std::size_t caller) -> Crowd::Work {
    const auto lock = std::make_shared<ReadWriteLock>(client.make_read_write_lock(lock_name("sharing/all")));
    const auto random = std::make_shared<Random>(caller);
    return [lock, random, percentage](const std::stop_token& stop) {
      const bool reads = uniform(*random) * 100 < percentage;
      const auto start = Clock::now();
      Lease lease = reads ? lock->acquire_shared({.cancel = stop}) : lock->acquire({.cancel = stop});
      release(lease);
      return Clock::now() - start;
    };
  };
}

// The caller 0 writes, the others read. A sample is the writer's wait. It comes when there have been as many reads
// since its last turn as there are readers: readers who have just been woken are not there yet.
MakeWork writer_and_readers() {
  const auto reads = std::make_shared<std::atomic<std::uint64_t>>(0);
  return [reads](const Client& client, std::size_t caller) -> Crowd::Work {
    const auto lock = std::make_shared<ReadWriteLock>(client.make_read_write_lock(lock_name("sharing/writer")));
    if (caller > 0) {
      return [lock, reads](const std::stop_token& stop) -> std::optional<Clock::duration> {
        Lease lease = lock->acquire_shared({.cancel = stop});
        release(lease);
        ++*reads;
        return std::nullopt;
      };
    }
    return [lock, reads](const std::stop_token& stop) {
      const std::uint64_t enough = *reads + readers;
      while (*reads < enough && !stop.stop_requested()) std::this_thread::sleep_for(next_question);
      const auto start = Clock::now();
      Lease lease = lock->acquire({.cancel = stop});
      const Clock::duration waited = Clock::now() - start;
      release(lease);
      return waited;
    };
  };
}

Crowd::Work permit_pairs(const Client& client, std::size_t /*caller*/) {
  const auto semaphore = std::make_shared<Semaphore>(client.make_semaphore(lock_name("sharing/permits"), permits));
  return [semaphore](const std::stop_token& stop) {
    const auto start = Clock::now();
    Lease permit = semaphore->acquire({.cancel = stop});
    release(permit);
    return Clock::now() - start;
  };
}

std::vector<Measurement> measure_sharing(Target& target, const Plan& plan, const Subject& subject, std::size_t callers,
                                         const MakeWork& make, Add add, const std::stop_token& stop) {
  const std::vector<Client> clients = connect_several(target, callers, callers);
  Collector collector(target, subject, Who::dlock);
  Crowd crowd(callers, [&](std::size_t caller, const std::stop_token&) {
    return make(clients[caller % clients.size()], caller);
  });
  measure_repeats(crowd, plan, stop, [&](const Window& window) { add(collector, window); });
  return measurements_of({&collector, 1});
}

class Steps {
 public:
  Steps(Target& target, const Plan& plan) : target_(target), plan_(plan) {}

  // `make` makes what one run needs, and that the work of each caller.
  void add(const std::string& what, Parameters parameters, std::size_t callers, const std::function<MakeWork()>& make,
           Add add) {
    if (!possible(target_, callers)) return;
    const Subject subject{scenario::sharing, std::move(parameters)};
    steps_.push_back(
        {.what = "sharing, " + what,
         .scenario = scenario::sharing,
         .expected = plan_.warm_up + plan_.repeats * plan_.round,
         .run = [&target = target_, &plan = plan_, subject, callers, make, add](const std::stop_token& stop) {
           return measure_sharing(target, plan, subject, callers, make(), add, stop);
         }});
  }
  std::vector<Step> finish() { return std::move(steps_); }

 private:
  Target& target_;
  const Plan& plan_;
  std::vector<Step> steps_;
};

std::string callers_text(std::size_t callers) {
  return std::to_string(callers) + " callers";
}

}  // namespace

std::vector<Step> sharing_steps(Target& target, const Plan& plan) {
  const Capabilities able = target.connect(1).capabilities();
  Steps steps(target, plan);
  if (able.has(LockKind::read_write)) {
    for (const int percentage : percentages) {
      for (const std::size_t callers : crowds) {
        steps.add(
            std::to_string(percentage) + " % reads, " + callers_text(callers),
            {{parameter::callers, static_cast<double>(callers)}, {parameter::reads, percentage}}, callers,
            [percentage] { return readers_and_writers(percentage); }, add_pairs);
      }
    }
    steps.add("a writer among " + std::to_string(readers) + " readers",
              {{parameter::readers, static_cast<double>(readers)}}, readers + 1, writer_and_readers, add_waits);
  }
  if (able.has(LockKind::semaphore)) {
    steps.add(
        std::to_string(permits) + " permits, " + callers_text(permit_callers),
        {{parameter::callers, static_cast<double>(permit_callers)}, {parameter::permits, permits}}, permit_callers,
        [] { return MakeWork(permit_pairs); }, add_pairs);
  }
  return steps.finish();
}

}  // namespace dlock::bench
