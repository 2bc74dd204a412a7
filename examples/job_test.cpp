// A unit test of code that takes locks: without a service, without a sleep, on a clock that the test moves. Copy it.
// With GoogleTest, each function below "The tests" becomes a TEST, and expect() an EXPECT_TRUE.
//
//   job_test
#include <chrono>
#include <functional>
#include <future>
#include <iostream>
#include <latch>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include <dlock/dlock.hpp>
#include <dlock/spi/backend.hpp>

using namespace std::chrono_literals;

namespace {

// --- The code under test ---------------------------------------------------------------------------------------------

enum class Outcome { done, busy, lost, unavailable };

// Writes rows 1 to 3 under the lock. `write` stands for a statement of a database that checks the token.
Outcome run_job(dlock::DistributedLock& lock, dlock::Duration wait,
                const std::function<void(int row, const dlock::Lease& lease)>& write) {
  try {
    auto lease = lock.try_acquire_for(wait, {.lease = 30s});
    if (!lease) return Outcome::busy;
    for (int row = 1; row <= 3; ++row) {
      if (!lease->held()) return Outcome::lost;
      write(row, *lease);
    }
    return lease->release() ? Outcome::done : Outcome::lost;
  } catch (const dlock::Error& e) {
    if (e.code() == dlock::errc::unavailable) return Outcome::unavailable;
    throw;  // an error in the program or its configuration, such as access_denied
  }
}

// --- What the tests share --------------------------------------------------------------------------------------------

int failures = 0;

void expect(bool holds, const std::string& what) {
  std::cout << (holds ? "ok: " : "FAILED: ") << what << '\n';
  if (!holds) ++failures;
}

// A service of its own for each test, since locks of memory://NAME are those of the process. Clients of one service
// need the same clock.
struct Fixture {
  explicit Fixture(const std::string& test) : url("memory://" + test) {}

  const std::string url;
  const std::shared_ptr<dlock::ManualClock> clock = std::make_shared<dlock::ManualClock>();
  const dlock::Client client = dlock::connect(url, {.label = "job", .clock = clock});
  const dlock::Client other = dlock::connect(url, {.label = "other", .clock = clock});
  dlock::DistributedLock lock = client.make_lock("job");
  int written = 0;
};

// The loss signal comes from the client's own thread.
void wait_until_lost(const dlock::Lease& lease) {
  std::latch lost(1);
  const std::stop_callback on_loss(lease.lost(), [&lost] { lost.count_down(); });
  lost.wait();
}

// A service that is down.
class UnreachableBackend final : public dlock::Backend {
 public:
  [[nodiscard]] dlock::Capabilities capabilities() const noexcept override { return {.backend = "unreachable"}; }
  [[nodiscard]] std::unique_ptr<dlock::Contention> contend(const dlock::LockRequest& request,
                                                           dlock::GrantSink& sink) override {
    const dlock::Failure why{dlock::errc::unavailable, "no answer"};
    if (request.wait) {
      sink.unreachable(why);
    } else {
      sink.failed(why);
    }
    return std::make_unique<dlock::Contention>();
  }
  void release(const dlock::Grant& /*grant*/, ReleaseHandler done) override {
    done({.status = dlock::ReleaseOutcome::Status::not_owner});
  }
};

// --- The tests -------------------------------------------------------------------------------------------------------

void a_free_lock_lets_the_job_run() {
  Fixture test("free");
  const Outcome outcome = run_job(test.lock, 0s, [&](int, const dlock::Lease&) { ++test.written; });
  expect(outcome == Outcome::done && test.written == 3, "a free lock lets the job run");
  expect(test.other.make_lock("job").try_acquire().has_value(), "and the job releases it");
}

void a_job_that_does_not_wait_finds_the_lock_busy() {
  Fixture test("busy");
  const dlock::Lease held = test.other.make_lock("job").acquire();
  const Outcome outcome = run_job(test.lock, 0s, [&](int, const dlock::Lease&) { ++test.written; });
  expect(outcome == Outcome::busy && test.written == 0, "a job that does not wait finds the lock busy");
}

void a_wait_ends_on_time() {
  Fixture test("wait");
  const dlock::Lease held = test.other.make_lock("job").acquire();
  auto outcome = std::async(std::launch::async,
                            [&] { return run_job(test.lock, 5s, [&](int, const dlock::Lease&) { ++test.written; }); });
  while (test.client.stats().waiting == 0) std::this_thread::yield();  // until its wait has begun
  test.clock->advance(5s);
  expect(outcome.get() == Outcome::busy && test.written == 0, "a job that waits gives up after five seconds");
}

void a_paused_job_stops() {
  Fixture test("paused");
  const Outcome outcome = run_job(test.lock, 0s, [&](int row, const dlock::Lease&) {
    ++test.written;
    if (row == 2) test.clock->advance(1min);  // the machine was suspended
  });
  expect(outcome == Outcome::lost && test.written == 2, "a job that was paused for longer than its lease stops");
}

void a_job_whose_lock_is_taken_away_stops() {
  Fixture test("broken");
  const Outcome outcome = run_job(test.lock, 0s, [&](int row, const dlock::Lease& lease) {
    ++test.written;
    if (row > 1) return;
    (void)test.other.break_lock("job");
    test.clock->advance(15s);  // the client renews the lease after a third of it, and learns of the loss
    wait_until_lost(lease);
  });
  expect(outcome == Outcome::lost && test.written == 1, "a job whose lock is taken away stops");
}

void a_loss_after_the_last_write_is_reported() {
  Fixture test("late");
  const Outcome outcome = run_job(test.lock, 0s, [&](int row, const dlock::Lease&) {
    ++test.written;
    if (row == 3) test.clock->advance(1min);
  });
  expect(outcome == Outcome::lost && test.written == 3, "a loss after the last write is reported");
}

void an_unreachable_service_is_not_busy() {
  const dlock::Client client = dlock::connect(
      "unreachable://", {}, [](dlock::BackendHost&, const auto&) { return std::make_unique<UnreachableBackend>(); });
  dlock::DistributedLock lock = client.make_lock("job");
  int written = 0;
  const Outcome outcome = run_job(lock, 0s, [&](int, const dlock::Lease&) { ++written; });
  expect(outcome == Outcome::unavailable && written == 0, "an unreachable service is not busy");
}

}  // namespace

int main() {
  try {
    a_free_lock_lets_the_job_run();
    a_job_that_does_not_wait_finds_the_lock_busy();
    a_wait_ends_on_time();
    a_paused_job_stops();
    a_job_whose_lock_is_taken_away_stops();
    a_loss_after_the_last_write_is_reported();
    an_unreachable_service_is_not_busy();
  } catch (const dlock::Error& e) {
    std::cerr << "job_test: " << e.what() << '\n';
    return 1;
  }
  return failures == 0 ? 0 : 1;
}
