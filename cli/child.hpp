// The command that runs under the lock, as a process in a group of its own.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/inherited.hpp"
#include "cli/terminal.hpp"
#include "cli/unique_fd.hpp"

namespace dlock::cli {

struct Command {
  std::vector<std::string> arguments;                          // the first is the program, looked up in PATH
  std::vector<std::pair<std::string, std::string>> variables;  // replace those of the same name in the environment
};

class Child {
 public:
  // Makes the process, which waits. Throws std::system_error when the system refuses another process. The process
  // dies with the calling thread, which must therefore be the main thread.
  Child(const Command& command, const Inherited& inherited, const Terminal& terminal);

  // Lets it go ahead and become the command.
  void go();

  // Readable when the command was started or could not be.
  [[nodiscard]] int started_fd() const noexcept { return status_.get(); }
  // Call once when started_fd() is readable: the errno of a failed exec, or nullopt when the command runs.
  [[nodiscard]] std::optional<int> exec_failure();

  // The process id, and the id of its group.
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  // Sends a signal to the whole group, if there is still somebody in it.
  void signal(int signal) const noexcept;
  [[nodiscard]] bool group_is_empty() const noexcept;

 private:
  pid_t pid_ = -1;
  UniqueFd go_;
  UniqueFd status_;
};

}  // namespace dlock::cli
