// A command that is run to its end, whatever signals come.
#pragma once

#include <csignal>
#include <string>
#include <vector>

namespace dlock::bench {

// Blocks those that end a program, in this thread and in those that it starts from now on; they are left to run().
class EndingSignals {
 public:
  EndingSignals();
  EndingSignals(const EndingSignals&) = delete;
  EndingSignals& operator=(const EndingSignals&) = delete;

  // One that has come since; 0: none has.
  [[nodiscard]] int arrived() const;
  // Starts command[0], looked up in PATH, with our terminal and files, and waits for it. Signals that ask us to end are
  // passed on to it, unless the terminal has sent them, which tells the command by itself. Its status, as a shell would
  // say it: 128 + signal, 127 where it cannot be started.
  [[nodiscard]] int run(std::vector<std::string> command) const;

 private:
  sigset_t ending_{};
  sigset_t awaited_{};  // and the end of a child
};

}  // namespace dlock::bench
