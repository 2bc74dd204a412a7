// Runs a nightly job on one machine of many. Every host starts this program at the same time of day; the first one does
// the work, the others find the lock taken and go back to sleep.
//
//   nightly_job [URL]            a service that all hosts share; by default locks within this process, to look at
//
// A host that is paused for longer than its lease may write when another host has begun. If the job writes to a
// database, let the database refuse that: fenced_write.cpp.
#include <chrono>
#include <condition_variable>
#include <functional>
#include <iostream>
#include <mutex>
#include <string>

#include <dlock/dlock.hpp>

using namespace std::chrono_literals;

namespace {

// The clocks of hosts differ by a little. A short job could be over before the last host looks, which would then run it
// again; so the lock is kept for longer than clocks may differ. Minutes, outside an example.
constexpr auto hold_at_least = 200ms;

// Waits for the time to come, or for the lease to be lost.
void wait_until(std::chrono::steady_clock::time_point time, const std::stop_token& lost) {
  std::mutex mutex;
  std::condition_variable_any nothing;
  std::unique_lock lock(mutex);
  nothing.wait_until(lock, lost, time, [] { return false; });
}

void run_once(const dlock::Client& client, const std::string& host, const std::function<void()>& job) {
  const auto started = std::chrono::steady_clock::now();
  dlock::DistributedLock lock = client.make_lock("nightly-report");
  auto lease = lock.try_acquire();
  if (!lease) {
    std::cout << host << ": somebody else is on it\n";
    return;
  }
  std::cout << host << ": writing the report\n";
  job();
  wait_until(started + hold_at_least, lease->lost());
  std::cout << host << (lease->release() ? ": done\n" : ": done, but the lock was lost on the way\n");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "memory://";
  try {
    // Two hosts in one program, so that there is something to see.
    const dlock::Client one = dlock::connect(url, {.label = "host-1"});
    const dlock::Client two = dlock::connect(url, {.label = "host-2"});
    run_once(one, "host-1", [&] {
      run_once(two, "host-2", [] { std::cout << "this must never be seen\n"; });  // its clock is a little behind
    });
  } catch (const dlock::Error& e) {
    std::cerr << "nightly_job: " << e.what() << '\n';
    return 1;
  }
}
