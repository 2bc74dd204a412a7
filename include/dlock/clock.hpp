// The clocks of leases.
//
//   dlock::TimePoint t = dlock::LeaseClock::now();
//   auto clock = std::make_shared<dlock::ManualClock>();           // in tests: time moves when the test says so
//   auto client = dlock::connect("memory://", {.clock = clock});
//   clock->advance(30s);
//
// dlock counts leases on CLOCK_BOOTTIME. It is monotonic, the same for all processes of a machine, and runs while the
// machine is suspended. So a lease that expired during a suspend is not held.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace dlock {

// A standard Clock over CLOCK_BOOTTIME.
struct LeaseClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<LeaseClock, duration>;
  static constexpr bool is_steady = true;

  // Never blocks; any thread.
  [[nodiscard]] static time_point now() noexcept;
};

// The end of a lease, or a deadline.
using TimePoint = LeaseClock::time_point;

// Notified when a manual clock moves. For implementations of Clock; engines of clients are listeners.
class ClockListener {
 public:
  ClockListener() = default;
  ClockListener(const ClockListener&) = delete;
  ClockListener& operator=(const ClockListener&) = delete;
  virtual ~ClockListener() = default;
  // The clock has moved: runs everything that is due, and what that causes. Returns how many tasks and handlers it has
  // run so far: the clock repeats the calls until no listener has run any more. If the caller must not wait (on an
  // engine thread, inside a task), it only schedules them, and returns 0. Any thread.
  virtual std::uint64_t clock_moved() noexcept = 0;
};

// The time source of a client. All functions may be called from any thread; those of this class never block.
class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;

  // Lease time: deadlines and validity. Never goes back.
  [[nodiscard]] virtual TimePoint now() const noexcept = 0;

  // Wall time, used only for fencing tokens that grow across restarts. It may be stepped in either direction.
  [[nodiscard]] virtual std::chrono::system_clock::time_point wall_now() const noexcept = 0;

  // Whether now() follows CLOCK_BOOTTIME by itself. A clock that returns false calls its listeners when it moves.
  [[nodiscard]] virtual bool runs_by_itself() const noexcept { return true; }

  // Keeps a weak reference to the listener. No effect on a clock that runs by itself.
  virtual void add_listener(std::weak_ptr<ClockListener> /*listener*/) {}
};

// A clock over CLOCK_BOOTTIME and CLOCK_REALTIME; the default of clients.
[[nodiscard]] std::shared_ptr<Clock> boottime_clock();

// A clock that moves only when the test moves it. For tests of code that holds leases, without sleeping. Any number of
// clients may use the same one.
class ManualClock final : public Clock {
 public:
  // Starts one day after the clock's epoch, at wall time 2024-01-01 00:00 UTC.
  ManualClock() noexcept;

  [[nodiscard]] TimePoint now() const noexcept override;
  [[nodiscard]] std::chrono::system_clock::time_point wall_now() const noexcept override;
  [[nodiscard]] bool runs_by_itself() const noexcept override { return false; }
  void add_listener(std::weak_ptr<ClockListener> listener) override;

  // Moves lease time and wall time forward (it ignores a negative duration). Returns when everything that became due
  // has run, and what that caused: renewals, losses and the callbacks of lost(), ends of waits, handlers and calls of
  // observers, on all clients that use this clock. So a handler must not wait for the thread that is in advance().
  //
  // The time jumps, as if all processes had been suspended for that time: a lease that ends on the way is lost, renewed
  // or not. To let renewals keep leases, advance in steps that are shorter than a third of the lease.
  //
  // Does not wait for answers from outside the process: those of a service, or of other processes to file://. On the
  // engine thread of a client (in a handler) it waits for nothing, and what became due runs soon after.
  void advance(std::chrono::nanoseconds by);

  // Steps the wall time alone, either way, as an administrator or NTP would.
  void step_wall(std::chrono::nanoseconds by);

 private:
  mutable std::mutex mutex_;
  TimePoint now_;
  std::chrono::system_clock::time_point wall_;
  std::vector<std::weak_ptr<ClockListener>> listeners_;
};

}  // namespace dlock
