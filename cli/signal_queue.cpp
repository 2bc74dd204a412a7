#include "cli/signal_queue.hpp"

#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "cli/system.hpp"

namespace dlock::cli {

namespace {
constexpr std::array ending{SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr std::array user{SIGUSR1, SIGUSR2};
}  // namespace

sigset_t SignalQueue::signals() noexcept {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : ending) ::sigaddset(&set, signal);
  for (const int signal : user) ::sigaddset(&set, signal);
  // TTOU is never read; blocked, it lets dlock take the terminal back while it is in the background.
  for (const int signal : {SIGCHLD, SIGTSTP, SIGCONT, SIGTTOU}) ::sigaddset(&set, signal);
  return set;
}

bool SignalQueue::forwarded(int signal) noexcept {
  return ends(signal) || std::find(user.begin(), user.end(), signal) != user.end();
}

bool SignalQueue::ends(int signal) noexcept {
  return std::find(ending.begin(), ending.end(), signal) != ending.end();
}

SignalQueue::SignalQueue() {
  read_all_signals();
}

void SignalQueue::keep_user_signals_pending() {
  sigset_t set = signals();
  for (const int signal : user) ::sigdelset(&set, signal);
  listen(set);
}

void SignalQueue::read_all_signals() {
  listen(signals());
}

void SignalQueue::listen(const sigset_t& set) {
  const int fd = check(::signalfd(fd_.get(), &set, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd");
  if (!fd_) fd_ = UniqueFd(fd);
}

std::optional<int> SignalQueue::next() noexcept {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

bool SignalQueue::stop_job() noexcept {
  (void)::kill(0, SIGTSTP);  // our own group always exists
  sigset_t stop;
  ::sigemptyset(&stop);
  ::sigaddset(&stop, SIGTSTP);
  (void)::sigprocmask(SIG_UNBLOCK, &stop, nullptr);  // dlock stops and continues here
  (void)::sigprocmask(SIG_BLOCK, &stop, nullptr);
  // The stop discarded any earlier CONT, so one that is pending now has continued dlock.
  sigset_t pending;
  return ::sigpending(&pending) == 0 && ::sigismember(&pending, SIGCONT) == 1;
}

}  // namespace dlock::cli
