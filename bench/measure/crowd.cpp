#include "bench/measure/crowd.hpp"

#include <algorithm>
#include <utility>

#include <dlock/error.hpp>

namespace dlock::bench {

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
  try {
    work_until_stopped(worker, stop);
  } catch (const Error& error) {
    if (!stop.stop_requested() || error.code() != errc::cancelled) fail(std::current_exception());
  } catch (...) {
    fail(std::current_exception());
  }
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
  {
    std::unique_lock lock(mutex_);
    (void)changed_.wait(lock, stop, [this] { return ready_ == workers_.size() || failure_; });
  }
  throw_failure();
}

void Crowd::start() {
  const std::scoped_lock lock(mutex_);
  started_ = true;
  changed_.notify_all();
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

bool Crowd::has_sample() const {
  return std::any_of(workers_.begin(), workers_.end(), [](const auto& worker) {
    const std::scoped_lock lock(worker->mutex);
    return !worker->samples.empty();
  });
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

}  // namespace dlock::bench
