// The signals that dlock acts upon, read as data instead of interrupting.
#pragma once

#include <csignal>
#include <optional>

#include "cli/system.hpp"

namespace dlock::cli {

class SignalQueue {
 public:
  // Everything this can read; Inherited::take_over_signals() blocks them.
  [[nodiscard]] static sigset_t signals() noexcept;
  // Passed on to the command: INT, TERM, HUP, QUIT, USR1, USR2.
  [[nodiscard]] static bool forwarded(int signal) noexcept;
  // Those that end a wait: INT, TERM, HUP, QUIT.
  [[nodiscard]] static bool ends(int signal) noexcept;

  SignalQueue();

  // While there is no command yet, USR1 and USR2 stay pending for it.
  void keep_user_signals_pending();
  void read_all_signals();

  // Readable when a signal is there.
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  [[nodiscard]] std::optional<int> next() noexcept;

  // Stops dlock and the rest of its job, as Ctrl-Z does to a program that does not catch it, and returns when it was
  // continued. False: did not stop, because nobody could continue us (no job control) or the caller had TSTP ignored.
  bool stop_job() noexcept;

 private:
  void listen(const sigset_t& set);
  UniqueFd fd_;
};

}  // namespace dlock::cli
