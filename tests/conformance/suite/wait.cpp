#include "suite/wait.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "tests/support/sanitizers.hpp"

namespace dlock::conformance {

namespace {

std::atomic<std::chrono::milliseconds> longest_end{std::chrono::milliseconds(0)};

// A positive number of milliseconds; anything else counts as unset.
std::chrono::milliseconds from_environment(const char* variable, std::chrono::milliseconds unset) {
  const char* text = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): the suite never changes the environment
  if (text == nullptr) return unset;
  const std::string_view digits(text);
  long value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value <= 0) return unset;
  return std::chrono::milliseconds(value);
}

}  // namespace

std::chrono::milliseconds guard() {
  static const auto value = from_environment("DLOCK_CONFORMANCE_GUARD_MS", std::chrono::seconds(60));
  return value + longest_end.load();
}

void allow_for(std::chrono::nanoseconds end) {
  longest_end = std::max(longest_end.load(), std::chrono::ceil<std::chrono::milliseconds>(end));
}

std::chrono::milliseconds short_lease() {
  // Sanitizers slow processes down, and more than two renewals must not come late in a row.
  return from_environment("DLOCK_CONFORMANCE_LEASE_MS", std::chrono::milliseconds(dlock::test::sanitized ? 600 : 300));
}

std::chrono::milliseconds short_session() {
  constexpr std::chrono::milliseconds shortest = std::chrono::seconds(dlock::test::sanitized ? 4 : 2);
  return std::max(shortest, 6 * short_lease());
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
