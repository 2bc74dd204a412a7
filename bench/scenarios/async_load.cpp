#include "bench/scenarios/async_load.hpp"

#include <stdexcept>
#include <utility>

#include "bench/scenarios/work.hpp"

namespace dlock::bench {

namespace {

// The last of very many requests is answered after all others, so a late answer does not mean a dead service.
constexpr std::chrono::seconds response_timeout{30};

constexpr std::chrono::seconds time_to_finish{2};  // for the calls in flight at the end

}  // namespace

AsyncLoad::AsyncLoad(const Target& target, std::size_t count)
    : started_(count), client_(target.connect(count, {.response_timeout = response_timeout})) {
  locks_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) locks_.push_back(client_->make_lock(lock_name("outstanding", i)));
}

AsyncLoad::~AsyncLoad() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  cancel_.request_stop();
  {
    std::unique_lock lock(mutex_);
    (void)changed_.wait_for(lock, time_to_finish, [this] { return under_way_ == 0; });
  }
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
  if (!failure_ && !stopping_ && !failure.empty()) failure_ = std::make_exception_ptr(std::runtime_error(failure));
  changed_.notify_all();
}

std::uint64_t AsyncLoad::calls() const {
  const std::scoped_lock lock(mutex_);
  return halves_ / 2;
}

Window AsyncLoad::take() {
  const std::scoped_lock lock(mutex_);
  Window window;
  window.calls_of_each = {(halves_ - std::exchange(taken_halves_, halves_)) / 2};
  window.samples = std::exchange(samples_, {});
  return window;
}

// A sample from a call that began before the window is not yet a call.
bool AsyncLoad::has_sample() const {
  const std::scoped_lock lock(mutex_);
  return !samples_.empty() && halves_ >= taken_halves_ + 2;
}

}  // namespace dlock::bench
