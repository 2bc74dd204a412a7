// The reaper: a tiny process between dlock and the command. It is the command's parent and a subreaper, so that all
// descendants of the command stay below it: a process that leaves the command's group (timeout, setsid, a shell with
// job control), and a daemon that has left its parent. Directly below dlock, they would become init's when dlock is
// killed, and could no longer be found. The reaper
//   - reports the command's state to dlock, and ends when no process is left;
//   - if dlock disappears without ending it, kills everything below it, and only then closes its copies of the files
//     that dlock had open: so a kernel lock (file://) is held until no process of the command is left.
// It is in dlock's session, because a command whose parent is in a different one cannot be stopped from the terminal,
// but in its own group, so that no signal meant for dlock's job reaches it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <vector>

#include "cli/process_tree.hpp"
#include "cli/system.hpp"

namespace dlock::cli {

class Reaper {
 public:
  struct Report {
    enum class What : int {
      forked,       // `value` is the command's process id, or the negative errno of fork()
      stopped,      // by this signal
      exited,       // with this status
      killed,       // by this signal
      left_behind,  // after end_seen(): the command has ended, and other processes have not
    } what;
    int value;
  };

  // Creates the reaper, which forks the command's process; that calls become_command(), which must not return and must
  // be async-signal-safe. The command dies with its reaper. The reaper keeps the descriptors `kept` open. Throws
  // std::system_error when the system refuses another process.
  Reaper(const std::vector<int>& kept, const std::function<void()>& become_command);
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;
  // Kills all processes that are left, and waits for them, but not for ever.
  ~Reaper();

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] pid_t command() const noexcept { return command_; }
  [[nodiscard]] const ProcessTree& tree() const noexcept { return tree_; }

  // Readable when there is a report.
  [[nodiscard]] int reports_fd() const noexcept { return reports_.get(); }
  [[nodiscard]] std::optional<Report> next_report() noexcept;
  // Until this is called, a command that has ended remains a zombie, so that its process id, which is its group's, is
  // not reused. The reaper answers with left_behind, or by ending.
  void end_seen() noexcept;

  // Call when the reaper was found dead and reaped.
  void gone() noexcept;
  // Ends the reaper, and does nothing to the processes below it.
  void abandon() noexcept;

 private:
  pid_t pid_ = -1;
  pid_t command_ = -1;
  ProcessTree tree_;
  UniqueFd control_;
  UniqueFd reports_;
};

}  // namespace dlock::cli
