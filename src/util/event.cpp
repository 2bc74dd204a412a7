#include "util/event.hpp"

#include <dlock/duration.hpp>

#include "util/futex.hpp"

namespace dlock::util {

void Event::set() noexcept {
  if (state_.exchange(state_set) != state_waiting) return;
  // From here on the event may be gone; its address is all that is used.
  if (DeferredWakes::outermost != nullptr) {
    DeferredWakes::outermost->add(&state_);
  } else {
    futex_wake(&state_, 1);
  }
}

bool Event::wait(std::optional<std::chrono::nanoseconds> limit) noexcept {
  if (is_set()) return true;
  if (DeferredWakes::outermost != nullptr) DeferredWakes::outermost->wake();
  MonotonicPoint until{};
  if (limit) until = saturating_add(MonotonicPoint(std::chrono::steady_clock::now()), *limit);
  std::uint32_t idle = state_idle;
  (void)state_.compare_exchange_strong(idle, state_waiting,
                                       std::memory_order_acq_rel);  // fails if waiting or set already
  while (!is_set()) {
    if (limit && std::chrono::steady_clock::now() >= until) return is_set();
    futex_wait(state_, state_waiting, limit ? &until : nullptr);
  }
  return true;
}

thread_local DeferredWakes* DeferredWakes::outermost = nullptr;

DeferredWakes::DeferredWakes() noexcept {  // NOLINT(cppcoreguidelines-pro-type-member-init): words_, see there
  if (outermost == nullptr) outermost = this;
}

DeferredWakes::~DeferredWakes() {
  wake();
  if (outermost == this) outermost = nullptr;
}

void DeferredWakes::wake() noexcept {
  for (std::size_t i = 0; i < count_; ++i) futex_wake(words_[i], 1);
  count_ = 0;
}

void DeferredWakes::add(Word word) noexcept {
  if (count_ == most) wake();
  words_[count_++] = word;
}

}  // namespace dlock::util
