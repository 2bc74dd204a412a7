#include "bench/scenarios/async_load.hpp"

#include <stdexcept>
#include <utility>

#include "bench/measure/usage.hpp"
#include "bench/scenarios/pairs.hpp"

namespace dlock::bench {

namespace {

// The last of very many requests is answered when all the others are; that is no sign of a dead service.
constexpr std::chrono::seconds response_timeout{30};

constexpr std::chrono::seconds patience{10};  // for the first sample
constexpr std::chrono::milliseconds next_look{10};
constexpr std::chrono::seconds time_to_finish{2};  // what is under way at the end

}  // namespace

AsyncLoad::AsyncLoad(const Target& target, std::size_t count)
    : started_(count), client_(target.connect(count, {.response_timeout = response_timeout})) {
  locks_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    locks_.push_back(client_->make_lock(lock_name("outstanding/" + std::to_string(i))));
  }
}

AsyncLoad::~AsyncLoad() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  cancel_.request_stop();
  (void)wait_until(Clock::now() + time_to_finish, {}, [this] { return under_way_ == 0; });
  client_.reset();  // afterwards, no handler runs that could use the other members
}

void AsyncLoad::start() {
  {
    const std::scoped_lock lock(mutex_);
    under_way_ = locks_.size();
  }
  for (std::size_t i = 0; i < locks_.size(); ++i) acquire(i);
}

void AsyncLoad::acquire(std::size_t index) {
  started_[index] = Clock::now();
  locks_[index].async_acquire({.cancel = cancel_.get_token()}, [this, index](std::error_code ec, Lease lease) {
    acquired(index, ec, std::move(lease));
  });
}

void AsyncLoad::acquired(std::size_t index, std::error_code ec, Lease lease) {
  if (ec) return drop("an acquire failed: " + ec.message());
  {
    const std::scoped_lock lock(mutex_);
    ++halves_;
  }
  lease.async_release([this, index](std::error_code error, bool was_ours) { released(index, error, was_ours); });
}

void AsyncLoad::released(std::size_t index, std::error_code ec, bool was_ours) {
  if (ec) return drop("a release failed: " + ec.message());
  if (!was_ours) return drop("a lock was lost while it was held");
  bool again = false;
  {
    const std::scoped_lock lock(mutex_);
    ++halves_;
    samples_.add(Clock::now() - started_[index]);
    again = !stopping_;
  }
  if (again) return acquire(index);
  drop({});
}

void AsyncLoad::drop(const std::string& failure) {
  const std::scoped_lock lock(mutex_);
  --under_way_;
  if (failure_.empty() && !stopping_) failure_ = failure;
  changed_.notify_all();
}

template <class Condition>
bool AsyncLoad::wait_until(Clock::time_point time, const std::stop_token& stop, const Condition& condition) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, stop, time, condition);
}

void AsyncLoad::warm_up(std::chrono::nanoseconds length, const std::stop_token& stop) {
  constexpr std::chrono::seconds longest{5};
  const auto end = Clock::now() + longest;
  (void)measure(length, stop);
  while (!stop.stop_requested() && pairs() < locks_.size() && Clock::now() < end) (void)measure(next_look, stop);
}

Window AsyncLoad::measure(std::chrono::nanoseconds length, const std::stop_token& stop) {
  std::uint64_t halves_before = 0;
  {
    const std::scoped_lock lock(mutex_);
    samples_ = {};
    halves_before = halves_;
  }
  const auto processor_before = processor_time();
  const auto switches_before = context_switches().all();
  const auto start = Clock::now();
  const auto failed = [this] { return !failure_.empty(); };
  (void)wait_until(start + length, stop, failed);
  // The sample of a pair that began before is not a pair yet. When there is one is not signalled, because the handlers
  // would do nothing else.
  const auto failed_or_sampled = [&] { return failed() || (!samples_.empty() && halves_ >= halves_before + 2); };
  while (!stop.stop_requested() && Clock::now() < start + length + patience &&
         !wait_until(Clock::now() + next_look, stop, failed_or_sampled)) {
  }
  Window window;
  window.length = Clock::now() - start;
  window.processor_time = processor_time() - processor_before;
  window.context_switches = context_switches().all() - switches_before;
  window.complete = !stop.stop_requested();
  const std::scoped_lock lock(mutex_);
  window.calls_of_each = {(halves_ - halves_before) / 2};
  if (!failure_.empty()) throw std::runtime_error(failure_);
  if (window.complete && (samples_.empty() || window.calls() == 0)) {
    throw std::runtime_error("no lock was taken and released within ten seconds");
  }
  window.samples = std::exchange(samples_, {});
  return window;
}

std::uint64_t AsyncLoad::pairs() const {
  const std::scoped_lock lock(mutex_);
  return halves_ / 2;
}

}  // namespace dlock::bench
