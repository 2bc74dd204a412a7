// All signals blocked for the calling thread, as long as it lives. A thread inherits the mask of the one that makes it:
// signals are for the program's own threads.
#pragma once

#include <signal.h>

namespace dlock::util {

class SignalsBlocked {
 public:
  SignalsBlocked() noexcept {
    sigset_t all;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before_);  // fails only for a wrong first argument
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { (void)pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace dlock::util
