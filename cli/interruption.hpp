// Lets a user end a long task, and keep its results so far.
#pragma once

#include <atomic>
#include <stop_token>
#include <thread>

#include "cli/signal_queue.hpp"
#include "cli/system.hpp"

namespace dlock::cli {

// Turns the first INT, TERM, HUP or QUIT into a request to stop. The next one ends the process at once. Needs
// Inherited::take_over_signals().
class Interruption {
 public:
  Interruption() : watcher_([this](const std::stop_token& end) { watch(end); }) {}
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;
  ~Interruption();

  [[nodiscard]] std::stop_token stop() const { return source_.get_token(); }
  // 0: no signal arrived.
  [[nodiscard]] int signal() const noexcept { return signal_.load(); }

 private:
  void watch(const std::stop_token& end);

  SignalQueue signals_;
  Event over_;
  std::stop_source source_;
  std::atomic<int> signal_ = 0;
  std::jthread watcher_;
};

}  // namespace dlock::cli
