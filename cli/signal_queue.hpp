// The signals that dlock handles, read as data instead of interrupting.
#pragma once

#include <csignal>
#include <optional>

#include "cli/system.hpp"

namespace dlock::cli {

class SignalQueue {
 public:
  // All signals that this can read; Inherited::take_over_signals() blocks them.
  [[nodiscard]] static sigset_t signals() noexcept;
  // Passed on to the command: INT, TERM, HUP, QUIT, USR1, USR2.
  [[nodiscard]] static bool forwarded(int signal) noexcept;
  // Those that end a wait: INT, TERM, HUP, QUIT.
  [[nodiscard]] static bool ends(int signal) noexcept;

  SignalQueue();

  // Before there is a command, USR1 and USR2 stay pending for it.
  void keep_user_signals_pending();
  void read_all_signals();

  // Readable when a signal is pending.
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  [[nodiscard]] std::optional<int> next() noexcept;

  // Stops dlock and the rest of its job, as Ctrl-Z does to a program that does not catch it, and returns once it is
  // continued. False: did not stop, because nothing could continue it (no job control) or the caller ignored TSTP.
  bool stop_job() noexcept;

 private:
  void listen(const sigset_t& set);
  UniqueFd fd_;
};

}  // namespace dlock::cli
