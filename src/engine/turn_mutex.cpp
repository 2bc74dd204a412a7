#include "engine/turn_mutex.hpp"

#include <limits>
#include <thread>

#include "engine/hand_over.hpp"
#include "util/futex.hpp"
#include "util/pause.hpp"

namespace dlock::engine {

namespace {

// A thread that waits tries again seldom, after pauses that double: if two processors took every other turn, the data
// would move between them each time, and a turn would take several times as long.
constexpr int first_pauses = 32;
constexpr int last_pauses = 512;

bool several_processors() noexcept {
  static const bool several = std::thread::hardware_concurrency() > 1;
  return several;
}

}  // namespace

// All operations are in one total order (seq_cst): a sleeper registers before its final check, and a waker checks for
// sleepers after its change.

bool TurnMutex::try_lock() noexcept {
  std::uint32_t state = state_.load();
  while ((state & locked) == 0 && first_.load() == 0) {
    if (state_.compare_exchange_weak(state, state | locked)) return true;
  }
  return false;
}

void TurnMutex::lock() noexcept {
  if (try_lock() || (spin() && try_lock())) return;
  sleep_for_lock();
}

// False: it has been locked all the time.
bool TurnMutex::spin() const noexcept {
  for (int pauses = first_pauses; several_processors() && pauses <= last_pauses; pauses *= 2) {
    for (int i = 0; i < pauses; ++i) util::pause_processor();
    if ((state_.load() & locked) == 0 && first_.load() == 0) return true;
  }
  return false;
}

void TurnMutex::sleep_for_lock() noexcept {
  state_ += sleeper;
  while (true) {
    hand_over();
    const std::uint32_t wakes = wakes_.load();
    std::uint32_t state = state_.load();
    hand_over();
    if ((state & locked) == 0 && first_.load() == 0) {
      if (state_.compare_exchange_weak(state, ((state | locked) & ~coming) - sleeper)) return;
    } else if ((state & coming) != 0) {
      // It may be this one that is expected to come. No thread sleeps before it has seen the flag cleared: the next
      // unlock then sets it again, and changes the word.
      (void)state_.compare_exchange_weak(state, state & ~coming);
    } else {
      hand_over();
      util::futex_wait(wakes_, wakes);
      (void)spin();
    }
  }
}

void TurnMutex::lock_first() noexcept {
  (void)lock_first_until(nullptr);  // never gives up
}

bool TurnMutex::lock_first_for(std::chrono::nanoseconds limit) noexcept {
  const util::MonotonicPoint until = std::chrono::steady_clock::now() + limit;
  return lock_first_until(&until);
}

bool TurnMutex::lock_first_until(const util::MonotonicPoint* until) noexcept {
  ++first_;
  while (true) {
    hand_over();
    const std::uint32_t wakes = first_wakes_.load();
    std::uint32_t state = state_.load();
    while ((state & locked) == 0) {
      if (state_.compare_exchange_weak(state, state | locked)) {
        hand_over();
        --first_;
        return true;
      }
    }
    if (until != nullptr && std::chrono::steady_clock::now() >= *until) {
      // unlock() may have woken no other waiter because of this one.
      --first_;
      hand_over();
      pass_on(state_.load());
      return false;
    }
    hand_over();
    util::futex_wait(first_wakes_, wakes, until);
  }
}

void TurnMutex::unlock() noexcept {
  const std::uint32_t state = state_ -= locked;
  hand_over();
  pass_on(state);
}

void TurnMutex::pass_on(std::uint32_t state) noexcept {
  if (first_.load() > 0) {
    ++first_wakes_;
    util::futex_wake(&first_wakes_, 1);
    return;
  }
  while (state >= sleeper && (state & (locked | coming)) == 0) {
    if (state_.compare_exchange_weak(state, state | coming)) {
      hand_over();
      ++wakes_;
      util::futex_wake(&wakes_, 1);
      return;
    }
  }
}

}  // namespace dlock::engine
