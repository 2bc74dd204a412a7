// Preloaded before libfaketime, which takes every timer of a descriptor for one on the wall clock (its issue 378) and
// shifts those on other clocks along with it: they would go off hours too late. These go to the kernel as they are.
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): glibc's are reserved
extern "C" int timerfd_settime(int fd, int flags, const itimerspec* to, itimerspec* before) noexcept {
  return static_cast<int>(::syscall(SYS_timerfd_settime, fd, flags, to, before));
}

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): as above
extern "C" int timerfd_gettime(int fd, itimerspec* now) noexcept {
  return static_cast<int>(::syscall(SYS_timerfd_gettime, fd, now));
}
