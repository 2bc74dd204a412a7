#include "torture/rig/child_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "torture/rig/hang_guard.hpp"

namespace dlock::rig {

namespace {

constexpr int exec_failed = 127;

// Runs in the child, in the parent's memory, so it makes async-signal-safe calls only.
[[noreturn]] void become(char* const* arguments, char* const* environment, pid_t parent, int output, int input) {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != parent) ::_exit(exec_failed);
  (void)::setpgid(0, 0);  // cannot fail in a new child
  (void)::dup2(input, STDIN_FILENO);
  (void)::dup2(output, STDOUT_FILENO);
  (void)::dup2(output, STDERR_FILENO);
  sigset_t none;
  ::sigemptyset(&none);
  (void)::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execvpe(arguments[0], arguments, environment);
  for (const std::string_view text :
       {std::string_view("cannot execute the program "), std::string_view(arguments[0])}) {
    (void)!::write(STDERR_FILENO, text.data(), text.size());  // a failure cannot be reported
  }
  ::_exit(exec_failed);
}

std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> environment_with(std::vector<std::string> variables) {
  const auto name_of = [](std::string_view entry) { return entry.substr(0, entry.find('=')); };
  const std::vector<std::string> given = variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const bool replaced = std::any_of(given.begin(), given.end(),
                                      [&](const std::string& each) { return name_of(each) == name_of(*entry); });
    if (!replaced) variables.emplace_back(*entry);
  }
  return variables;
}

bool readable_within_guard(int fd) {
  pollfd source{.fd = fd, .events = POLLIN, .revents = 0};
  int ready = 0;
  do {
    ready = ::poll(&source, 1, static_cast<int>(std::chrono::milliseconds(hang_guard).count()));
  } while (ready < 0 && errno == EINTR);
  return ready == 1;
}

}  // namespace

ChildProcess::ChildProcess(std::vector<std::string> command, std::vector<std::string> variables)
    : stop_(require(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")) {
  const std::vector<char*> arguments = pointers_to(command);
  std::vector<std::string> environment = environment_with(std::move(variables));
  const std::vector<char*> environment_pointers = pointers_to(environment);
  std::array<int, 2> ends{};
  require(::pipe2(ends.data(), O_CLOEXEC), "pipe2");
  UniqueFd output(ends[0]);
  const UniqueFd child_end(ends[1]);
  const UniqueFd nothing(require(::open("/dev/null", O_RDONLY | O_CLOEXEC), "/dev/null"));
  const pid_t parent = ::getpid();
  // Not fork(): of a large process, as one with a sanitizer is, that copies more than starting the program costs. Nor
  // posix_spawn(), which cannot ask for a signal when the parent ends.
  const pid_t child = ::vfork();  // NOLINT(clang-analyzer-security.insecureAPI.vfork)
  if (child == 0) {
    become(arguments.data(), environment_pointers.data(), parent, child_end.get(), nothing.get());
  }
  pid_ = require(child, "vfork");
  reader_ = std::jthread([this, fd = std::move(output)] { read_output(fd.get()); });
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) {
    (void)::kill(pid_, SIGKILL);
    (void)::waitpid(pid_, nullptr, 0);
  }
  // Its children may still hold the pipe open, so do not wait for the pipe's end.
  const std::uint64_t one = 1;
  (void)!::write(stop_.get(), &one, sizeof(one));  // cannot fail: the counter is 0
}

bool ChildProcess::running() const {
  siginfo_t info{};
  return pid_ > 0 && ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == 0;
}

std::string ChildProcess::output() const {
  const std::scoped_lock lock(mutex_);
  return output_;
}

bool ChildProcess::wait_for_output(const std::string& text) const {
  return wait_until([&](const std::string& output) { return output.find(text) != std::string::npos; }, hang_guard);
}

bool ChildProcess::wait_until(const Condition& condition, std::chrono::nanoseconds limit,
                              const std::stop_token& stop) const {
  std::unique_lock lock(mutex_);
  (void)printed_.wait_for(lock, stop, limit, [&] { return output_ended_ || condition(output_); });
  return condition(output_);
}

bool ChildProcess::output_ended() const {
  const std::scoped_lock lock(mutex_);
  return output_ended_;
}

void ChildProcess::wait_for_output_end() const {
  std::unique_lock lock(mutex_);
  if (!printed_.wait_for(lock, hang_guard, [&] { return output_ended_; })) {
    throw std::runtime_error("hang: the program does not end\n" + output_);
  }
}

void ChildProcess::signal(int number) const {
  if (pid_ <= 0) throw std::logic_error("a signal to a program that has ended");  // -1 would mean all processes
  require(::kill(pid_, number), "kill");
}

void ChildProcess::freeze() const {
  signal(SIGSTOP);
  siginfo_t info{};
  require(::waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WEXITED | WNOWAIT), "waitid");
}

void ChildProcess::thaw() const {
  signal(SIGCONT);
}

bool ChildProcess::frozen() const {
  siginfo_t info{};
  return pid_ > 0 && ::waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid != 0;
}

int ChildProcess::wait() {
  const UniqueFd end(require(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)), "pidfd_open"));
  if (!readable_within_guard(end.get())) throw std::runtime_error("hang: the program does not end\n" + output());
  int status = 0;
  require(::waitpid(pid_, &status, 0), "waitpid");
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void ChildProcess::read_output(int fd) {
  std::array<char, 4096> bytes;
  for (;;) {
    std::array sources{pollfd{.fd = fd, .events = POLLIN, .revents = 0},
                       pollfd{.fd = stop_.get(), .events = POLLIN, .revents = 0}};
    if (::poll(sources.data(), sources.size(), -1) < 0 && errno == EINTR) continue;
    const ssize_t n = sources[0].revents != 0 ? ::read(fd, bytes.data(), bytes.size()) : 0;
    const std::scoped_lock lock(mutex_);
    if (n > 0) output_.append(bytes.data(), static_cast<std::size_t>(n));
    output_ended_ = n <= 0;
    printed_.notify_all();
    if (output_ended_) return;
  }
}

std::string run_command(std::vector<std::string> command) {
  const std::string shown = command.front();
  ChildProcess process(std::move(command));
  process.wait_for_output_end();
  if (const int status = process.wait(); status != 0) {
    throw std::runtime_error(shown + " ended with status " + std::to_string(status) + "\n" + process.output());
  }
  return process.output();
}

}  // namespace dlock::rig
