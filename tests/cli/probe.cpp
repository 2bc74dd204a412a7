// The command that the tests run under dlock: reports what it was given, and behaves as it is told to.
//
//   probe listen [TO SIGNAL]
//                     says "ready PID", sends the signal, waits for one of the forwarded signals, prints its number,
//                     exits 33
//   probe family      itself and a grandchild in the same group: "ready PID GRANDCHILD"; both ignore TERM, and the
//                     leader says "usr1" at USR1
//   probe orphan      like family, but the leader exits 5 when standard input ends
//   probe stubborn    says "ready PID", and ignores whatever can be ignored
//   probe wait        says "ready PID" and exits 0 when standard input ends
//   probe terminal    "foreground" or "background", then waits like listen
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>

namespace {

void drain_input() {
  std::array<char, 256> bytes;
  while (::read(STDIN_FILENO, bytes.data(), bytes.size()) > 0) {
  }
}

int wait_for_signal(pid_t send_to = 0, int sent = 0) {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) ::sigaddset(&set, signal);
  (void)::sigprocmask(SIG_BLOCK, &set, nullptr);
  std::printf("ready %d\n", ::getpid());
  if (send_to != 0) (void)::kill(send_to, sent);
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
  const std::map<std::string, std::function<int()>> behaviours{
      {"listen",
       [&] { return argc < 4 ? wait_for_signal() : wait_for_signal(std::atoi(argv[2]), std::atoi(argv[3])); }},
      {"family", [] { return family(false); }},
      {"orphan", [] { return family(true); }},
      {"stubborn", stubborn},
      {"wait", wait_for_input_end},
      {"terminal", terminal},
  };
  const auto found = behaviours.find(argc < 2 ? "" : argv[1]);
  return found == behaviours.end() ? 64 : found->second();
}
