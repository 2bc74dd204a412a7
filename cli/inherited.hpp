// The state in which dlock was started: descriptors, signal mask, signal dispositions. The command gets exactly that.
#pragma once

#include <csignal>
#include <vector>

namespace dlock::cli {

class Inherited {
 public:
  // Call first in main(), before anything is opened. Opens /dev/null as any standard descriptor that was closed, so
  // that nothing that dlock opens is mistaken for standard input or output. From now on, a write beyond the limit of
  // file sizes fails, and does not end dlock by SIGXFSZ.
  Inherited();

  // Blocks the signals that SignalQueue reads, in every thread started from now on, and gives SIGCHLD and SIGPIPE the
  // dispositions that dlock needs. Call before the first thread is started.
  void take_over_signals();

  // Whether the caller ignored this signal (nohup, a background job of a script).
  [[nodiscard]] bool ignored(int signal) const noexcept;

  // The descriptors that are open now and were not passed on by the caller.
  [[nodiscard]] std::vector<int> opened_since() const;

  // Whether dlock was started with child processes: by a shell that had background jobs and called exec.
  [[nodiscard]] bool had_children() const noexcept { return had_children_; }

  // In a child, between fork and exec: restores the signals, and marks every descriptor that the caller did not open as
  // close-on-exec. Async-signal-safe.
  void restore() const noexcept;

 private:
  std::vector<int> descriptors_;  // sorted
  sigset_t mask_{};
  struct sigaction chld_ {};
  struct sigaction pipe_ {};
  struct sigaction file_size_ {};
  bool had_children_;
  bool taken_over_ = false;
};

}  // namespace dlock::cli
