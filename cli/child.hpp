// The command that runs under the lock, as a process in a group of its own.
#pragma once

#include <sys/types.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/inherited.hpp"
#include "cli/process_tree.hpp"
#include "cli/reaper.hpp"
#include "cli/system.hpp"
#include "cli/terminal.hpp"

namespace dlock::cli {

struct Command {
  std::vector<std::string> arguments;  // the first is the program, looked up in PATH
  // Replace those of the same name in the environment; nullopt removes one.
  std::vector<std::pair<std::string, std::optional<std::string>>> variables;
};

class Child {
 public:
  // Creates the process, which waits. Throws std::system_error if the system refuses another process.
  Child(const Command& command, const Inherited& inherited, const Terminal& terminal);

  // Lets the process exec the command.
  void go();

  // Readable when the command was started or could not be.
  [[nodiscard]] int started_fd() const noexcept { return status_.get(); }
  // Call once when started_fd() is readable: the errno of a failed exec, or nullopt when the command runs.
  [[nodiscard]] std::optional<int> exec_failure();

  // The process id, and the id of its group.
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  // Its parent, which reports its state.
  [[nodiscard]] Reaper& reaper() noexcept { return *reaper_; }

  // Call when the end of the command was reported: its process id may soon be reused.
  void ended() noexcept;
  // Call when the reaper was killed, which kills the command. Its other processes are below dlock now, unlike
  // `guardian` (0: none). If dlock was started with child processes, theirs are there, too; then only the command's
  // group is known from now on.
  void reaper_was_killed(const Inherited& inherited, pid_t guardian) noexcept;

  // dlock has a new guardian.
  void set_guardian(pid_t guardian) noexcept;

  // All processes of the command, whatever group they are in.
  [[nodiscard]] const ProcessTree& tree() const noexcept { return tree_; }
  // The group that may be signalled as a whole; 0: none, its members are in the tree.
  [[nodiscard]] const ProcessGroup& group() const noexcept { return group_; }

  // Sends a signal to the whole group, if it has members.
  void signal(int signal) const noexcept;
  // Sends signals to all processes of the command: those of the group, and those that have left it.
  void signal_all(std::initializer_list<int> signals) const noexcept;
  // Whether any process of the command is left. Needed only if the reaper was killed; otherwise it reports that.
  [[nodiscard]] bool anything_left() const noexcept;

 private:
  UniqueFd go_;
  UniqueFd status_;
  std::optional<Reaper> reaper_;
  pid_t pid_ = -1;
  ProcessGroup own_group_;
  ProcessGroup group_;  // own_group_, as long as it may be signalled as a whole
  ProcessTree tree_;
};

}  // namespace dlock::cli
