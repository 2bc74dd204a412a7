#include "tests/servers/command.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

namespace dlock::bench {

namespace {

constexpr int cannot_start = 127;

int status_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

EndingSignals::EndingSignals() {
  ::sigemptyset(&ending_);
  for (const int each : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&ending_, each);
  awaited_ = ending_;
  ::sigaddset(&awaited_, SIGCHLD);
  (void)::pthread_sigmask(SIG_BLOCK, &awaited_, nullptr);  // fails for wrong arguments only
}

int EndingSignals::arrived() const {
  constexpr timespec at_once{};
  const int signal = ::sigtimedwait(&ending_, nullptr, &at_once);
  return signal > 0 ? signal : 0;
}

int EndingSignals::run(std::vector<std::string> command) const {
  std::vector<char*> arguments;
  for (std::string& each : command) arguments.push_back(each.data());
  arguments.push_back(nullptr);
  posix_spawnattr_t attributes;
  (void)::posix_spawnattr_init(&attributes);
  sigset_t none;
  ::sigemptyset(&none);
  (void)::posix_spawnattr_setsigmask(&attributes, &none);
  (void)::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t child = -1;
  const int failure = ::posix_spawnp(&child, arguments[0], nullptr, &attributes, arguments.data(), environ);
  (void)::posix_spawnattr_destroy(&attributes);
  if (failure != 0) {
    std::fprintf(stderr, "%s: %s\n", arguments[0], std::strerror(failure));
    return cannot_start;
  }
  for (;;) {
    int status = 0;
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) return status_of(status);
    if (ended < 0 && errno != EINTR) return cannot_start;
    siginfo_t info{};
    const int signal = ::sigwaitinfo(&awaited_, &info);
    if (signal > 0 && signal != SIGCHLD && info.si_code != SI_KERNEL) (void)::kill(child, signal);
  }
}

}  // namespace dlock::bench
