#include "bench/measure/load.hpp"

#include <numeric>
#include <stdexcept>
#include <utility>

#include "bench/measure/usage.hpp"

namespace dlock::bench {

namespace {

// How much longer than planned a window may last if no call has ended.
constexpr std::chrono::seconds patience{10};
// Samples are polled, because a signal for each would slow the calls down.
constexpr std::chrono::milliseconds next_look{10};

}  // namespace

std::uint64_t Window::calls() const {
  return std::accumulate(calls_of_each.begin(), calls_of_each.end(), std::uint64_t{0});
}

double Window::per_second() const {
  const double seconds = std::chrono::duration<double>(length).count();
  return seconds > 0 ? static_cast<double>(calls()) / seconds : 0;
}

Window Load::measure(std::chrono::nanoseconds length, const std::stop_token& stop) {
  (void)take();
  const Usage before = usage();
  const auto start = Clock::now();
  wait_until(start + length, stop);
  while (!stop.stop_requested() && !has_sample()) {
    if (Clock::now() > start + length + patience) throw std::runtime_error("no call ended within ten seconds");
    wait_until(Clock::now() + next_look, stop);
  }
  const auto taken = Clock::now() - start;
  const Usage after = usage();
  Window window = take();
  window.length = taken;
  window.processor_time = after.processor_time - before.processor_time;
  window.context_switches = after.switches() - before.switches();
  window.complete = !stop.stop_requested();
  return window;
}

void Load::fail(std::exception_ptr failure) {
  const std::scoped_lock lock(mutex_);
  if (!failure_) failure_ = std::move(failure);
  changed_.notify_all();
}

void Load::throw_failure() const {
  const std::scoped_lock lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

void Load::wait_until(Clock::time_point time, const std::stop_token& stop) {
  {
    std::unique_lock lock(mutex_);
    (void)changed_.wait_until(lock, stop, time, [this] { return failure_ != nullptr; });
  }
  throw_failure();
}

}  // namespace dlock::bench
