// A one-shot event that one thread waits for. On a raw futex: std::atomic::wait of libstdc++ 12 spins first, which
// costs the tail of the latency as soon as there are more waiters than cores.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

namespace dlock::util {

class Event {
 public:
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // Everything before set() is visible to whoever saw is_set() or came out of wait(). The event may be destroyed as
  // soon as a waiter has seen it only if somebody else keeps it alive until set() has returned.
  void set() noexcept;
  [[nodiscard]] bool is_set() const noexcept { return state_.load() == state_set; }

  // Blocks until set, or until `limit` of real time has passed; answers is_set().
  bool wait(std::optional<std::chrono::nanoseconds> limit = std::nullopt) noexcept;

 private:
  static constexpr std::uint32_t state_idle = 0;
  static constexpr std::uint32_t state_waiting = 1;
  static constexpr std::uint32_t state_set = 2;
  std::atomic<std::uint32_t> state_{state_idle};
};

}  // namespace dlock::util
