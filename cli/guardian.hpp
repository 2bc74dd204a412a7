// The guardian: a tiny process that makes sure that the command does not outlive its lock. It kills all processes of
// the command:
//   - at once if dlock disappears without dismissing it (kill -9, a crash): then nothing renews the lock, and some
//     services have freed it already;
//   - when the lock's deadline has passed and dlock did not extend it (dlock was stopped or starved).
// The reaper (reaper.hpp) does the former as well. The guardian is for the cases that the reaper is stopped, or is
// killed together with dlock: then only the command's process group can be found.
//
// It is forked before dlock opens anything, keeps only its end of a pipe, and has its own session, so that no
// signal meant for dlock's group or terminal reaches it.
#pragma once

#include <dlock/clock.hpp>

#include <sys/types.h>

#include "cli/process_tree.hpp"
#include "cli/system.hpp"

namespace dlock::cli {

class Guardian {
 public:
  // Returns once the guardian is ready. Throws std::system_error when the process cannot be made.
  Guardian();
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;
  // Dismisses the guardian, which does nothing to the command.
  ~Guardian();

  // Guards this process group and this tree until the deadline; max(): no deadline. Returns whether the guardian is
  // alive; one that has not read its orders for very long is killed.
  bool watch(const ProcessGroup& group, const ProcessTree& tree, TimePoint deadline) noexcept;

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  // The guardian's process was found dead and reaped.
  void gone() noexcept { pid_ = -1; }

 private:
  pid_t pid_ = -1;
  UniqueFd orders_;
};

}  // namespace dlock::cli
