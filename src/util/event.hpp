// A one-shot event that one thread waits for. On a raw futex: std::atomic::wait of libstdc++ 12 spins first, which
// costs the tail of the latency as soon as there are more waiters than cores.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace dlock::util {

class Event {
 public:
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // Everything before set() is visible to a thread that saw is_set() or returned from wait(). The event may be
  // destroyed as soon as it has been seen to be set: set() does not touch it afterwards.
  void set() noexcept;
  [[nodiscard]] bool is_set() const noexcept { return state_.load() == state_set; }

  // Blocks until set, or until `limit` of real time has passed; answers is_set(). First runs the deferred wake-ups of
  // this thread.
  bool wait(std::optional<std::chrono::nanoseconds> limit = std::nullopt) noexcept;

 private:
  static constexpr std::uint32_t state_idle = 0;
  static constexpr std::uint32_t state_waiting = 1;
  static constexpr std::uint32_t state_set = 2;
  std::atomic<std::uint32_t> state_{state_idle};
};

// While one of these exists on a thread, set() on that thread does not wake the waiter but records it; wake() and the
// destructor of the outermost one wake all recorded waiters. For code that sets events under a mutex: a thread that is
// woken there takes the processor from the one that woke it, finds the mutex locked, and sleeps again.
class DeferredWakes {
 public:
  DeferredWakes() noexcept;
  DeferredWakes(const DeferredWakes&) = delete;
  DeferredWakes& operator=(const DeferredWakes&) = delete;
  ~DeferredWakes();

  void wake() noexcept;

 private:
  friend class Event;
  using Word = const std::atomic<std::uint32_t>*;
  void add(Word word) noexcept;

  static constexpr std::size_t most = 256;
  static thread_local DeferredWakes* outermost;
  std::array<Word, most> words_;  // not initialised: `count_` of them are in use
  std::size_t count_ = 0;
};

}  // namespace dlock::util
