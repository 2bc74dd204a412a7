#include "support/job_shell.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "cli/system.hpp"
#include "torture/rig/hang_guard.hpp"

namespace dlock::cli::test {

namespace {

char read_byte(int fd) {
  pollfd source{.fd = fd, .events = POLLIN, .revents = 0};
  if (::poll(&source, 1, dlock::rig::hang_guard_ms) != 1)
    throw std::runtime_error("hang: nothing came from the terminal");
  char byte = 0;
  if (::read(fd, &byte, 1) != 1) throw std::runtime_error("the terminal was closed");
  return byte;
}

std::string read_line(int fd) {
  std::string line;
  for (char byte = read_byte(fd); byte != '\n'; byte = read_byte(fd)) {
    if (byte != '\r') line += byte;
  }
  return line;
}

void report(int news, const std::string& text) {
  (void)write_all(news, text + "\n");
}

// The shell itself. Its parent has no other threads, so it may do what it likes after fork.
[[noreturn]] void be_shell(int terminal, int news, int control, std::vector<std::string>& command, bool redirect) {
  (void)::setsid();
  (void)::ioctl(terminal, TIOCSCTTY, 0);
  for (int fd = 0; fd <= 2; ++fd) (void)::dup2(terminal, fd);
  // The test's ends of other processes' pipes must not stay open here.
  for (int fd = 3; fd < 1024; ++fd) {
    if (fd != news && fd != control) (void)::close(fd);  // most are not open
  }
  (void)::signal(SIGTTOU, SIG_IGN);
  const pid_t job = ::fork();
  if (job == 0) {
    (void)::setpgid(0, 0);
    (void)::tcsetpgrp(0, ::getpid());
    (void)::signal(SIGTTOU, SIG_DFL);
    if (redirect) (void)::dup2(::open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
    std::vector<char*> arguments;
    for (std::string& word : command) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    ::execv(arguments[0], arguments.data());
    ::_exit(125);
  }
  (void)::setpgid(job, job);
  for (;;) {
    int status = 0;
    if (::waitpid(job, &status, WUNTRACED) != job) ::_exit(1);
    const bool mine = ::tcgetpgrp(0) == job;  // dlock must have taken it back before it stopped or ended
    (void)::tcsetpgrp(0, ::getpgrp());
    if (!mine) report(news, "terminal is not mine");
    if (WIFSTOPPED(status)) {
      report(news, "stopped");
      char word = 0;
      if (::read(control, &word, 1) != 1) ::_exit(1);
      (void)::tcsetpgrp(0, job);
      (void)::kill(-job, SIGCONT);
      report(news, "continued");
    } else {
      report(news, "exited " + std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)));
      ::_exit(0);
    }
  }
}

}  // namespace

JobShell::JobShell(std::vector<std::string> command, bool input_redirected) {
  int master = -1;
  int slave = -1;
  check(::openpty(&master, &slave, nullptr, nullptr, nullptr), "openpty");
  terminal_ = UniqueFd(master);
  UniqueFd slave_end(slave);
  check(::fcntl(master, F_SETFD, FD_CLOEXEC), "fcntl");
  check(::fcntl(slave, F_SETFD, FD_CLOEXEC), "fcntl");
  termios modes{};
  check(::tcgetattr(slave, &modes), "tcgetattr");
  modes.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  check(::tcsetattr(slave, TCSANOW, &modes), "tcsetattr");
  auto [news_read, news_write] = make_pipe();
  auto [control_read, control_write] = make_pipe();
  shell_ = check(::fork(), "fork");
  if (shell_ == 0) {
    control_write.reset();
    be_shell(slave, news_write.get(), control_read.get(), command, input_redirected);
  }
  news_ = std::move(news_read);
  control_ = std::move(control_write);
}

JobShell::~JobShell() {
  (void)::kill(shell_, SIGKILL);  // the terminal's hangup then ends the job
  (void)::waitpid(shell_, nullptr, 0);
}

void JobShell::type(const std::string& keys) {
  if (!write_all(terminal_.get(), keys)) throw std::runtime_error("the terminal was closed");
}

std::string JobShell::line() {
  return read_line(terminal_.get());
}

void JobShell::await(const std::string& text) {
  for (std::string seen; !seen.ends_with(text);) seen += read_byte(terminal_.get());
}

std::string JobShell::job_news() {
  return read_line(news_.get());
}

void JobShell::foreground() {
  if (!write_all(control_.get(), "f")) throw std::runtime_error("the shell is gone");
  if (job_news() != "continued") throw std::runtime_error("the shell did not continue its job");
}

}  // namespace dlock::cli::test
