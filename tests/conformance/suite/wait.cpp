#include "suite/wait.hpp"

#include <algorithm>
#include <atomic>

#include "suite/environment.hpp"

namespace dlock::conformance {

namespace {

std::atomic<std::chrono::milliseconds> longest_end{std::chrono::milliseconds(0)};

}  // namespace

std::chrono::milliseconds guard() {
  static const auto value = milliseconds_from_environment("DLOCK_CONFORMANCE_GUARD_MS", std::chrono::seconds(60));
  return value + longest_end.load();
}

void allow_for(std::chrono::nanoseconds end) {
  longest_end = std::max(longest_end.load(), std::chrono::ceil<std::chrono::milliseconds>(end));
}

void Event::set() {
  const std::scoped_lock lock(mutex_);
  ++count_;
  changed_.notify_all();
}

bool Event::happened(std::size_t times) const {
  return count() >= times;
}

std::size_t Event::count() const {
  const std::scoped_lock lock(mutex_);
  return count_;
}

bool Event::wait_for(std::chrono::nanoseconds limit, std::size_t times) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [&] { return count_ >= times; });
}

void Event::wait(const std::string& what, std::size_t times) const {
  if (!wait_for(guard(), times)) throw Hang(what);
}

Pending::~Pending() {
  if (!state_) return;
  cancel();
  (void)state_->ended.wait_for(guard());  // a hang was noticed before, or is the next test's to notice
}

Outcome Pending::get() {
  state_->ended.wait("an acquire of \"" + state_->name + "\" does not end");
  return std::move(state_->outcome);
}

Lease Pending::lease() {
  Outcome outcome = get();
  if (outcome.error) throw std::system_error(outcome.error, "an acquire of \"" + state_->name + "\" was not granted");
  return std::move(outcome.lease);
}

void release_soon(Lease lease) {
  auto kept = std::make_shared<Lease>(std::move(lease));
  kept->async_release([kept](std::error_code /*ec*/, bool /*was_ours*/) {});
}

}  // namespace dlock::conformance
