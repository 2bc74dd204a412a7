// When to connect: a connection is made when it is first wanted, and made again when it breaks, but not too often.
//
//   idle --want()--> connecting --ready()--> ready
//    ^                ^      |                 |
//    |              timer  down()            down()
//    |              want()   v                 |
//    +--rest()-------+--- pausing <------------+          stop() leads to over, from each of them
//
// The pauses grow (dlock::Backoff) until a connection was good: a request about locks was answered on it, and it lasted
// or proved to be of use. A service or a proxy that accepts the connection, perhaps the login as well, and closes it at
// the first request about locks is no better than one that accepts none, however long that takes. After a final refusal
// (a wrong password, a database that does not exist) it connects only when it is wanted or, if it insists, much less
// often.
#pragma once

#include <chrono>
#include <functional>
#include <string_view>
#include <vector>

#include <dlock/error.hpp>
#include <dlock/spi/backoff.hpp>
#include <dlock/spi/executor.hpp>

namespace dlock::common {

// Appended to the reason of a connection that was ready, and broke before it was answered().
inline constexpr std::string_view nothing_answered = "; no request about locks was answered";

// Makes no connections itself. In tasks only.
class Reconnect {
 public:
  struct Rules {
    std::chrono::nanoseconds longest_pause = std::chrono::seconds(1);
    std::chrono::nanoseconds lasting = std::chrono::seconds(2);  // an answered connection of this age was good
    // Whether it goes on after a final refusal, with longer pauses. false: only when it is wanted again.
    bool insists = false;
  };

  // connect: called when it is time to; one of ready(), down(), rest() and stop() follows.
  Reconnect(Executor& executor, Rules rules, std::function<void()> connect);

  // The connection is needed: connects now if it is idle, and soon if it is pausing.
  void want();
  // The connection was made.
  void ready();
  // A request about locks was answered on it, if only with an error.
  void answered() noexcept;
  // It is of use: if it breaks, the next one is made without a pause. Implies answered().
  void proven() noexcept;
  // It broke, or could not be made: plans the next attempt.
  void down(const Failure& why);
  // The same, with a pause of the caller's choice.
  void down_until(const Failure& why, TimePoint at);
  // Not before then, unless it is wanted.
  void pause_until(TimePoint at);
  // The connection is not needed for now: idle, until it is wanted.
  void rest();
  // For good.
  void stop();

  [[nodiscard]] bool is_ready() const noexcept { return state_ == State::ready; }
  [[nodiscard]] bool is_connecting() const noexcept { return state_ == State::connecting; }
  [[nodiscard]] bool is_idle() const noexcept { return state_ == State::idle; }
  [[nodiscard]] bool is_pausing() const noexcept { return state_ == State::pausing; }
  [[nodiscard]] bool is_over() const noexcept { return state_ == State::over; }
  [[nodiscard]] bool is_answered() const noexcept { return answered_; }
  // The connection proved to be of use, or was answered and lasted. False unless ready.
  [[nodiscard]] bool is_good() const;
  // Until a connection is answered: why there was none; no code before the first attempt has failed. A final refusal
  // stays the reason if a later connection is closed before it is answered.
  [[nodiscard]] const Failure& problem() const noexcept { return problem_; }

 private:
  enum class State { idle, connecting, ready, pausing, over };

  void connect();

  Executor& executor_;
  const Rules rules_;
  const std::function<void()> connect_;
  State state_ = State::idle;
  bool answered_ = false;
  bool proven_ = false;
  Failure problem_;
  Backoff backoff_;
  Backoff refused_;  // after final refusals
  TimePoint ready_since_;
  TimePoint last_attempt_ = TimePoint::min();
  TimePoint next_attempt_;
  Timer timer_;  // of the pause
};

// Whether trying again by itself would change nothing: the failure is neither errc::unavailable nor errc::ambiguous.
[[nodiscard]] bool is_final_refusal(const Failure& why) noexcept;
// One failure for several hosts or addresses: final only if each of them refused.
[[nodiscard]] Failure combined(const std::vector<Failure>& failures);

}  // namespace dlock::common
