// What dlock itself was started with: descriptors, signal mask, signal dispositions. The command gets exactly that.
#pragma once

#include <csignal>
#include <vector>

namespace dlock::cli {

class Inherited {
 public:
  // Call first thing in main(), before anything is opened. Standard descriptors that were closed are filled with
  // /dev/null, so that nothing dlock opens can be mistaken for standard input or output. A write beyond the limit of
  // file sizes fails from now on, and does not end dlock by SIGXFSZ.
  Inherited();

  // Makes the signals that SignalQueue reads wait for it, in every thread started from now on, and gives SIGCHLD and
  // SIGPIPE the dispositions that dlock needs. Call before the first thread is started.
  void take_over_signals();

  // Whether the caller had this signal ignored (nohup, a background job of a script).
  [[nodiscard]] bool ignored(int signal) const noexcept;

  // The descriptors that are open now and were not passed on by the caller.
  [[nodiscard]] std::vector<int> opened_since() const;

  // Whether dlock was started with child processes: by a shell that had background jobs and called exec.
  [[nodiscard]] bool had_children() const noexcept { return had_children_; }

  // In a child, between fork and exec: gives signals back as they were, and marks every descriptor that the caller did
  // not open as close-on-exec. Async-signal-safe.
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
