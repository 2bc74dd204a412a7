// A write beyond the limit of file sizes (ulimit -f) fails with EFBIG, and the kernel sends SIGXFSZ to the thread,
// which ends a program without a handler. As long as this lives, the calling thread gets no such signal: a library's
// write fails, and the caller's program goes on. A signal that was pending before stays.
#pragma once

#include <signal.h>

#include <cerrno>
#include <ctime>

namespace dlock::util {

class NoFileSizeSignal {
 public:
  NoFileSizeSignal() noexcept {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    (void)pthread_sigmask(SIG_BLOCK, &signal_, &before_);  // fails only for a wrong first argument
    sigset_t pending;
    // Only a thread that had blocked the signal can have one pending.
    was_pending_ =
        sigismember(&before_, SIGXFSZ) == 1 && sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
  }
  NoFileSizeSignal(const NoFileSizeSignal&) = delete;
  NoFileSizeSignal& operator=(const NoFileSizeSignal&) = delete;
  ~NoFileSizeSignal() { (void)pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  // Call after a write that failed with EFBIG: takes the signal that it left.
  void take() const noexcept {
    if (was_pending_) return;
    const timespec now{};
    while (sigtimedwait(&signal_, nullptr, &now) < 0 && errno == EINTR) {
    }
  }

 private:
  sigset_t signal_{};
  sigset_t before_{};
  bool was_pending_ = false;
};

}  // namespace dlock::util
