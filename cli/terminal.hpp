// The controlling terminal, and its foreground group. The command has its own process group, which must be in the
// foreground for Ctrl-C, Ctrl-Z and typed input to reach it.
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
  // The command will interact with a person: dlock is in the foreground, and both standard input and output are
  // terminals. If one of them is redirected, dlock may share the terminal with the rest of a pipeline (a pager), and
  // the command gets it only once it is stopped for reading.
  [[nodiscard]] bool interactive() const noexcept;

  void give_to(pid_t group) const noexcept;
  // No effect unless that group has it: the shell may have taken it already.
  void take_back_from(pid_t group) const noexcept;

 private:
  UniqueFd fd_;
};

}  // namespace dlock::cli
