#include "cli/child.hpp"

#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string_view>

#include "cli/system.hpp"

namespace dlock::cli {

namespace {

std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& variables) {
  std::vector<std::string> result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    bool replaced = false;
    for (const auto& variable : variables) replaced = replaced || variable.first == name;
    if (!replaced) result.emplace_back(text);
  }
  for (const auto& [name, value] : variables) result.push_back(name + "=" + value);
  return result;
}

std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

struct Start {
  char* const* arguments;
  char* const* environment;
  const Inherited& inherited;
  pid_t parent;
  int terminal;  // to be taken; -1: not
  int go;
  int status;
};

// dlock has other threads, so between fork and exec only async-signal-safe calls are made.
[[noreturn]] void become_command(const Start& start) noexcept {
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != start.parent) ::_exit(128 + SIGKILL);
  (void)::setpgid(0, 0);  // dlock does the same; whoever is first
  char word = 0;
  ssize_t n = 0;
  do {
    n = ::read(start.go, &word, 1);
  } while (n < 0 && errno == EINTR);
  if (n != 1) ::_exit(128 + SIGKILL);  // dlock died or thought better of it
  if (start.terminal >= 0) (void)::tcsetpgrp(start.terminal, ::getpid());
  start.inherited.restore();
  ::execvpe(start.arguments[0], start.arguments, start.environment);
  const int error = errno;
  (void)!::write(start.status, &error, sizeof error);  // if dlock is gone, nobody wants to know
  ::_exit(127);
}

}  // namespace

Child::Child(const Command& command, const Inherited& inherited, const Terminal& terminal) {
  std::vector<std::string> arguments = command.arguments;
  std::vector<std::string> environment = environment_with(command.variables);
  const std::vector<char*> argument_pointers = pointers_to(arguments);
  const std::vector<char*> environment_pointers = pointers_to(environment);
  auto [go_read, go_write] = make_pipe();
  auto [status_read, status_write] = make_pipe();
  const Start start{.arguments = argument_pointers.data(),
                    .environment = environment_pointers.data(),
                    .inherited = inherited,
                    .parent = ::getpid(),
                    .terminal = terminal.interactive() ? terminal.fd() : -1,
                    .go = go_read.get(),
                    .status = status_write.get()};
  pid_ = check(::fork(), "fork");
  if (pid_ == 0) {
    (void)::close(go_write.get());  // else it would never see dlock's end closed
    become_command(start);
  }
  (void)::setpgid(pid_, pid_);  // it does the same; whoever is first
  go_ = std::move(go_write);
  status_ = std::move(status_read);
}

void Child::go() {
  (void)write_all(go_.get(), "g");  // if it is dead already, its status says so
  go_.reset();
}

std::optional<int> Child::exec_failure() {
  int error = 0;
  ssize_t n = 0;
  do {
    n = ::read(status_.get(), &error, sizeof error);
  } while (n < 0 && errno == EINTR);
  status_.reset();
  if (n == sizeof error) return error;
  return std::nullopt;
}

void Child::signal(int signal) const noexcept {
  (void)::kill(-pid_, signal);  // ESRCH: everybody is gone, which is what the caller finds out next
}

bool Child::group_is_empty() const noexcept {
  return ::kill(-pid_, 0) < 0 && errno == ESRCH;
}

}  // namespace dlock::cli
