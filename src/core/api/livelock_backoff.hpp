// Ends livelocks of threads that acquire several locks at once, as std::lock() and std::scoped_lock do. Such a thread
// waits for one lock and tries the others; if one is busy, it releases all and waits for that one. If every request
// takes the same time, as over one connection, two threads that name the locks in different orders can collide again
// and again. So such a thread pauses before it waits: exponential backoff with full jitter, which begins with the time
// for which it held the locks in vain.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <random>
#include <thread>

namespace dlock::detail {

// The locks that one thread holds by lock() and try_lock(), and its failed tries. A lock that is destroyed while it is
// held counts as held for ever: that thread no longer pauses.
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

  // The longest pause that is due before the thread waits for this lock: only for the lock that was busy, and once.
  [[nodiscard]] Duration take(const void* lock) noexcept {
    if (busy_ != lock || held_ > 0) return Duration::zero();
    busy_ = nullptr;
    return limit_;
  }
  // Sleeps for a random part of take().
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
