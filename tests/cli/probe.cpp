// The command that the tests run under dlock: reports what it was given, and behaves as it is told to.
//
//   probe descriptors        the open descriptors, in one line
//   probe signals            what is blocked and what is ignored, as two lines of numbers
//   probe environment NAME   the value, or "(unset)"
//   probe arguments WORD...  the words, one a line, bytes that are not printable ASCII as \xHH
//   probe input              copies standard input, or says "(closed)"
//   probe listen             says "ready PID", waits for one of the forwarded signals, prints its number, exits 33
//   probe family             itself and a grandchild in the same group: "ready PID GRANDCHILD"; both ignore TERM, and
//                            the leader says "usr1" at USR1
//   probe orphan             like family, but the leader exits 5 when standard input ends
//   probe stubborn           says "ready PID", and ignores whatever can be ignored
//   probe wait               says "ready PID" and exits 0 when standard input ends
//   probe terminal           "foreground" or "background", then waits like listen
#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace {

int descriptors() {
  std::vector<int> found;
  DIR* dir = ::opendir("/proc/self/fd");
  if (dir == nullptr) return 1;
  while (const dirent* entry = ::readdir(dir)) {
    const int fd = std::atoi(entry->d_name);
    if (entry->d_name[0] != '.' && fd != ::dirfd(dir)) found.push_back(fd);
  }
  (void)::closedir(dir);
  std::sort(found.begin(), found.end());
  for (const int fd : found) std::printf("%d ", fd);
  std::printf("\n");
  return 0;
}

int signals() {
  sigset_t blocked;
  ::sigemptyset(&blocked);
  (void)::sigprocmask(SIG_BLOCK, nullptr, &blocked);
  std::printf("blocked");
  for (int signal = 1; signal < 32; ++signal) {
    if (::sigismember(&blocked, signal) == 1) std::printf(" %d", signal);
  }
  std::printf("\nignored");
  for (int signal = 1; signal < 32; ++signal) {
    struct sigaction action {};
    (void)::sigaction(signal, nullptr, &action);
    if (action.sa_handler == SIG_IGN) std::printf(" %d", signal);
  }
  std::printf("\n");
  return 0;
}

int environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  std::printf("%s\n", value == nullptr ? "(unset)" : value);
  return 0;
}

int arguments(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    for (const char c : word) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte >= 0x20 && byte < 0x7F) {
        std::putchar(c);
      } else {
        std::printf("\\x%02X", byte);
      }
    }
    std::putchar('\n');
  }
  return 0;
}

void drain_input() {
  std::array<char, 256> bytes;
  while (::read(STDIN_FILENO, bytes.data(), bytes.size()) > 0) {
  }
}

int input() {
  if (::fcntl(STDIN_FILENO, F_GETFD) < 0) {
    std::printf("(closed)\n");
    return 0;
  }
  std::array<char, 256> bytes;
  ssize_t n = 0;
  while ((n = ::read(STDIN_FILENO, bytes.data(), bytes.size())) > 0) {
    (void)std::fwrite(bytes.data(), 1, static_cast<std::size_t>(n), stdout);
  }
  return 0;
}

int wait_for_signal() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) ::sigaddset(&set, signal);
  (void)::sigprocmask(SIG_BLOCK, &set, nullptr);
  std::printf("ready %d\n", ::getpid());
  int signal = 0;
  (void)::sigwait(&set, &signal);
  std::printf("%d\n", signal);
  return 33;
}

int family(bool leader_ends) {
  (void)::signal(SIGTERM, SIG_IGN);
  (void)::signal(SIGUSR1, SIG_IGN);
  const pid_t grandchild = ::fork();
  if (grandchild == 0) {
    for (;;) ::pause();
  }
  (void)::signal(SIGUSR1, [](int) { (void)!::write(STDOUT_FILENO, "usr1\n", 5); });
  std::printf("ready %d %d\n", ::getpid(), grandchild);
  if (leader_ends) {
    drain_input();
    return 5;
  }
  for (;;) ::pause();
}

int stubborn() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) (void)::signal(signal, SIG_IGN);
  std::printf("ready %d\n", ::getpid());
  for (;;) ::pause();
}

int wait_for_input_end() {
  std::printf("ready %d\n", ::getpid());
  drain_input();
  return 0;
}

int terminal() {
  std::printf("%s\n", ::tcgetpgrp(STDIN_FILENO) == ::getpgrp() ? "foreground" : "background");
  return wait_for_signal();
}

}  // namespace

// LeakSanitizer stops a process that ends by ptrace(2), and a CONT of the job control at that moment undoes the stop:
// it would wait for ever. Here is nothing of dlock that could leak.
extern "C" int __lsan_is_turned_off();
extern "C" int __lsan_is_turned_off() {
  return 1;
}

int main(int argc, char** argv) {
  (void)std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty()) return 64;
  const std::string what = words.front();
  words.erase(words.begin());
  const std::map<std::string, std::function<int()>> behaviours{
      {"descriptors", descriptors},
      {"signals", signals},
      {"environment", [&] { return environment(words.at(0)); }},
      {"arguments", [&] { return arguments(words); }},
      {"input", input},
      {"listen", wait_for_signal},
      {"family", [] { return family(false); }},
      {"orphan", [] { return family(true); }},
      {"stubborn", stubborn},
      {"wait", wait_for_input_end},
      {"terminal", terminal},
  };
  const auto found = behaviours.find(what);
  return found == behaviours.end() ? 64 : found->second();
}
