#include "bench/measure/crowd.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include <dlock/error.hpp>

#include "bench/measure/usage.hpp"

namespace dlock::bench {

namespace {

// How much longer than planned a window may last where no call has ended by then.
constexpr std::chrono::seconds patience{10};
constexpr std::chrono::milliseconds next_look{10};

}  // namespace

std::uint64_t Window::calls() const {
  return std::accumulate(calls_of_each.begin(), calls_of_each.end(), std::uint64_t{0});
}

double Window::per_second() const {
  const double seconds = std::chrono::duration<double>(length).count();
  return seconds > 0 ? static_cast<double>(calls()) / seconds : 0;
}

double Window::switches_each() const {
  return calls() > 0 ? static_cast<double>(context_switches) / static_cast<double>(calls()) : 0;
}

Crowd::Crowd(std::size_t size, MakeWork make) : make_(std::move(make)) {
  for (std::size_t i = 0; i < size; ++i) workers_.push_back(std::make_unique<Worker>());
  for (std::size_t i = 0; i < size; ++i) {
    threads_.emplace_back([this, i](const std::stop_token& stop) { run(i, stop); });
  }
}

Crowd::~Crowd() {
  stop_all();
}

void Crowd::run(std::size_t worker, const std::stop_token& stop) noexcept {
  std::exception_ptr failure;
  try {
    work_until_stopped(worker, stop);
  } catch (const Error& error) {
    if (!stop.stop_requested() || error.code() != errc::cancelled) failure = std::current_exception();
  } catch (...) {
    failure = std::current_exception();
  }
  if (!failure) return;
  const std::scoped_lock lock(mutex_);
  if (!failure_) failure_ = std::move(failure);
  changed_.notify_all();
}

void Crowd::work_until_stopped(std::size_t worker, const std::stop_token& stop) {
  const Work work = make_(worker, stop);
  {
    std::unique_lock lock(mutex_);
    ++ready_;
    changed_.notify_all();
    if (!changed_.wait(lock, stop, [this] { return started_; })) return;
  }
  Worker& mine = *workers_[worker];
  while (!stop.stop_requested()) {
    const std::optional<Clock::duration> sample = work(stop);
    const std::scoped_lock lock(mine.mutex);
    if (sample) mine.samples.add(*sample);
    ++mine.calls;
    ++mine.all_calls;
  }
}

void Crowd::gather(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  (void)changed_.wait(lock, stop, [this] { return ready_ == workers_.size() || failure_; });
  lock.unlock();
  throw_failure();
}

void Crowd::start() {
  const std::scoped_lock lock(mutex_);
  started_ = true;
  changed_.notify_all();
}

Window Crowd::measure(std::chrono::nanoseconds length, const std::stop_token& stop) {
  (void)take();
  const auto processor_before = processor_time();
  const auto switches_before = context_switches().all();
  const auto start = Clock::now();
  wait_until(start + length, stop);
  while (!stop.stop_requested() && !has_samples()) {
    if (Clock::now() > start + length + patience) throw std::runtime_error("no call ended within ten seconds");
    wait_until(Clock::now() + next_look, stop);
  }
  const auto taken = Clock::now() - start;
  const auto processor_taken = processor_time() - processor_before;
  const auto switches = context_switches().all() - switches_before;
  Window window = take();
  window.length = taken;
  window.processor_time = processor_taken;
  window.context_switches = switches;
  window.complete = !stop.stop_requested();
  return window;
}

void Crowd::wait_until(Clock::time_point time, const std::stop_token& stop) {
  {
    std::unique_lock lock(mutex_);
    (void)changed_.wait_until(lock, stop, time, [this] { return failure_ != nullptr; });
  }
  throw_failure();
}

bool Crowd::has_samples() const {
  return std::any_of(workers_.begin(), workers_.end(), [](const auto& worker) {
    const std::scoped_lock lock(worker->mutex);
    return !worker->samples.empty();
  });
}

Window Crowd::finish() {
  stop_all();
  throw_failure();
  return take();
}

std::uint64_t Crowd::calls() const {
  std::uint64_t sum = 0;
  for (const auto& worker : workers_) {
    const std::scoped_lock lock(worker->mutex);
    sum += worker->all_calls;
  }
  return sum;
}

Window Crowd::take() {
  Window window;
  for (const auto& worker : workers_) {
    Samples samples;
    {
      const std::scoped_lock lock(worker->mutex);
      std::swap(samples, worker->samples);
      window.calls_of_each.push_back(std::exchange(worker->calls, 0));
    }
    window.samples.add(samples);
  }
  return window;
}

void Crowd::stop_all() {
  for (std::jthread& each : threads_) each.request_stop();
  threads_.clear();
}

void Crowd::throw_failure() {
  std::exception_ptr failure;
  {
    const std::scoped_lock lock(mutex_);
    failure = failure_;
  }
  if (!failure) return;
  stop_all();
  std::rethrow_exception(failure);
}

}  // namespace dlock::bench
