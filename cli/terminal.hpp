// The controlling terminal, and whose turn it is to read from it. The command has a process group of its own, so for
// Ctrl-C, Ctrl-Z and typing to reach it, that group must be the terminal's foreground group.
#pragma once

#include <sys/types.h>

#include "cli/system.hpp"

namespace dlock::cli {

class Terminal {
 public:
  // Without a controlling terminal all functions do nothing.
  Terminal() noexcept;

  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  [[nodiscard]] bool exists() const noexcept { return static_cast<bool>(fd_); }
  // dlock's own group is in the foreground.
  [[nodiscard]] bool ours() const noexcept;
  // The command is going to talk to a person: dlock is in the foreground, and both standard input and output are
  // terminals. With one of them redirected, dlock may share the terminal with the rest of a pipeline (a pager), and
  // the command gets it only when it asks, by being stopped for reading.
  [[nodiscard]] bool interactive() const noexcept;

  void give_to(pid_t group) const noexcept;
  // If that group has it; the shell may have taken it already.
  void take_back_from(pid_t group) const noexcept;

 private:
  UniqueFd fd_;
};

}  // namespace dlock::cli
