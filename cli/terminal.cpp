#include "cli/terminal.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace dlock::cli {

Terminal::Terminal() noexcept : fd_(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)) {}

bool Terminal::ours() const noexcept {
  return fd_ && ::tcgetpgrp(fd_.get()) == ::getpgrp();
}

bool Terminal::interactive() const noexcept {
  return ours() && ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
}

// The terminal may have been hung up meanwhile; then there is nothing to hand over.
void Terminal::give_to(pid_t group) const noexcept {
  if (fd_) (void)::tcsetpgrp(fd_.get(), group);
}

void Terminal::take_back_from(pid_t group) const noexcept {
  if (fd_ && ::tcgetpgrp(fd_.get()) == group) (void)::tcsetpgrp(fd_.get(), ::getpgrp());
}

}  // namespace dlock::cli
