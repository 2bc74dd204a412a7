// How threads that take several locks at once, as std::lock() and std::scoped_lock do, come out of step. Such a thread
// waits for one lock, tries the others, and if one is busy lets go of all and waits for that one. Two that name the
// same locks in different orders can meet like that again and again, when every request takes the same time, as it does
// over one connection. So a caller that let go pauses at random before it waits again, for about as long as it held in
// vain, and for twice as long each time: what is known as exponential backoff with full jitter.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <random>
#include <thread>

namespace dlock::detail {

// One thread: the locks that it holds by lock() and try_lock(), and its failed tries. (A lock that is destroyed while
// it is held counts as held: that thread makes no pauses any more.)
class LivelockBackoff {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;
  static constexpr Duration longest = std::chrono::milliseconds(100);

  [[nodiscard]] static LivelockBackoff& of_this_thread() {
    static thread_local LivelockBackoff backoff;
    return backoff;
  }

  void entered(TimePoint now) noexcept {
    if (held_++ == 0) {
      since_ = now;
    } else {
      limit_ = Duration::zero();
    }
  }
  void left() noexcept {
    if (held_ > 0) --held_;
  }
  // A try found its lock busy.
  void tried_in_vain(const void* lock, TimePoint now) noexcept {
    if (held_ == 0) return;
    const bool again = now - tried_ < 10 * longest;
    limit_ = std::min(std::max(again ? 2 * limit_ : Duration::zero(), now - since_), longest);
    tried_ = now;
    busy_ = lock;
  }

  // The longest pause that is due before the thread waits for this lock: where it was the one that was busy, and once.
  [[nodiscard]] Duration take(const void* lock) noexcept {
    if (busy_ != lock || held_ > 0) return Duration::zero();
    busy_ = nullptr;
    return limit_;
  }
  // Makes the pause that is due, if one is.
  void pause(const void* lock) {
    const auto most = take(lock).count();
    if (most <= 0) return;
    static thread_local std::minstd_rand random(std::random_device{}());
    std::this_thread::sleep_for(Duration(std::uniform_int_distribution<Duration::rep>(0, most)(random)));
  }

 private:
  std::size_t held_ = 0;
  TimePoint since_;
  TimePoint tried_;
  Duration limit_ = Duration::zero();
  const void* busy_ = nullptr;
};

}  // namespace dlock::detail
