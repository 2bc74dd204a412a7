// One direction of a proxied connection: what was taken from the sender and when it may be passed on. No I/O here
// except the taking.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace dlock::rig {

// What becomes of the bytes that go in one direction.
struct Traffic {
  enum class Mode {
    forward,
    hold,     // taken from the sender (up to a limit) and kept; passed on when the mode is forward again
    stop,     // not even taken from the sender, as a peer does that has stopped reading
    swallow,  // taken and thrown away
  } mode = Mode::forward;
  // Every byte is passed on so much later.
  std::chrono::nanoseconds delay{0};
  // A slow drip: at most this many bytes at a time, with this interval in between. 0: no limit.
  std::size_t drip_bytes = 0;
  std::chrono::nanoseconds drip_interval{0};
};

class ProxyStream {
 public:
  using Clock = std::chrono::steady_clock;

  void set(const Traffic& traffic) { traffic_ = traffic; }

  [[nodiscard]] bool wants_input() const;
  // Takes what the sender has to offer; returns how many bytes that was.
  std::size_t take(int source, Clock::time_point now);

  // What may be passed on now; empty if nothing.
  [[nodiscard]] std::string_view ready(Clock::time_point now) const;
  void passed(std::size_t count, Clock::time_point now);
  // When there will be something to pass on; nullopt if that is not a matter of time.
  [[nodiscard]] std::optional<Clock::time_point> next_due(Clock::time_point now) const;

  // The sender has ended, and everything it sent was passed on: now its end may be.
  [[nodiscard]] bool end_is_due() const;
  void finish();
  [[nodiscard]] bool finished() const noexcept { return finished_; }

 private:
  struct Chunk {
    Clock::time_point due;
    std::string bytes;
  };

  Traffic traffic_;
  std::deque<Chunk> chunks_;
  std::size_t passed_of_first_ = 0;
  std::size_t kept_ = 0;
  Clock::time_point next_drip_{};
  bool sender_ended_ = false;
  bool finished_ = false;
};

}  // namespace dlock::rig
