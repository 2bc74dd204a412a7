// One direction of a proxied connection: the data received from the sender, and when it may be forwarded. No I/O except
// receiving.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace dlock::rig {

// How the bytes in one direction are treated.
struct Traffic {
  enum class Mode {
    forward,
    hold,     // received (up to a limit) and kept; forwarded once the mode is forward again
    stop,     // not received, as by a peer that has stopped reading
    swallow,  // received and discarded
  } mode = Mode::forward;
  // Every byte is forwarded this much later.
  std::chrono::nanoseconds delay{0};
  // A slow drip: at most so many bytes at a time, with this interval in between. 0: no limit.
  std::size_t drip_bytes = 0;
  std::chrono::nanoseconds drip_interval{0};
};

class ProxyStream {
 public:
  using Clock = std::chrono::steady_clock;

  void set(const Traffic& traffic) { traffic_ = traffic; }

  [[nodiscard]] bool wants_input() const;
  // Receives the sender's data; returns the number of bytes.
  std::size_t take(int source, Clock::time_point now);

  // The data that may be forwarded now; empty: none.
  [[nodiscard]] std::string_view ready(Clock::time_point now) const;
  void passed(std::size_t count, Clock::time_point now);
  // When there will be data to forward; nullopt: that does not depend on time.
  [[nodiscard]] std::optional<Clock::time_point> next_due(Clock::time_point now) const;

  // The sender has ended, and all its data was forwarded: now its end may be.
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
