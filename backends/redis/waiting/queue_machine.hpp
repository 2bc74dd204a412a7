// Waiting in the server's queue, as decisions: what happened goes in, what to do next comes out. No I/O, no clock.
//
//   asking --busy--> waiting --wake-up, timer--> asking --granted--> done
//     |                                            |
//     +--no answer--> backing off --timer----------+
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

#include <dlock/spi/backend.hpp>

#include "backends/redis/requests/answers.hpp"

namespace dlock::redis {

class QueueMachine {
 public:
  enum class Report { none, granted, busy, unreachable, failed };
  struct Step {
    Report report = Report::none;
    bool ask = false;                              // now; answered() or failed() follows
    std::optional<TimePoint> wake = std::nullopt;  // call timer() then
  };

  // strangers: other lockers may use the same key that do not announce their releases.
  QueueMachine(std::function<std::uint64_t()> random, bool strangers)
      : random_(std::move(random)), strangers_(strangers) {}

  [[nodiscard]] Step start();
  // heard: wake-ups reach us, so that asking is only the safety net.
  [[nodiscard]] Step answered(const AcquireAnswer& answer, bool heard, TimePoint now);
  [[nodiscard]] Step failed(const Failure& why, TimePoint now);
  // Asking again would tell something new, even if a question is under way: we were granted the lock, or have become
  // able to hear.
  [[nodiscard]] Step news();
  // It is up to us to look when the holder's time ends, which is then.
  [[nodiscard]] Step watch(std::chrono::nanoseconds free_in, TimePoint now);
  // Asking may help where we are only waiting: the connection is back.
  [[nodiscard]] Step recovered();
  [[nodiscard]] Step timer() { return recovered(); }

  [[nodiscard]] bool asking() const noexcept { return state_ == State::asking; }
  // The server may have us in its queue, or even hold the lock for us.
  [[nodiscard]] bool maybe_known() const noexcept { return maybe_known_; }
  // A question went unanswered, and may yet be carried out, even after later ones.
  [[nodiscard]] bool unanswered() const noexcept { return unanswered_; }

 private:
  enum class State { idle, asking, waiting, backing_off, done };

  [[nodiscard]] Step ask();
  [[nodiscard]] std::chrono::nanoseconds between(std::chrono::nanoseconds low, std::chrono::nanoseconds high);
  [[nodiscard]] TimePoint next_look(const AcquireAnswer& answer, bool heard, TimePoint now);
  [[nodiscard]] std::chrono::nanoseconds little_after(std::chrono::nanoseconds end);

  const std::function<std::uint64_t()> random_;
  const bool strangers_;
  State state_ = State::idle;
  bool news_ = false;      // came while asking
  bool watching_ = false;  // we were told to watch the holder
  TimePoint look_;         // when we have to, as the last question does not tell; only while asking
  TimePoint wake_;         // while waiting
  bool maybe_known_ = false;
  bool unanswered_ = false;
  std::chrono::nanoseconds backoff_ = first_backoff;

  static constexpr std::chrono::milliseconds first_backoff{20};
  static constexpr std::chrono::milliseconds longest_backoff{1000};
};

}  // namespace dlock::redis
