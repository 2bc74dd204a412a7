#include "support/process.hpp"

#include <linux/close_range.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "cli/system.hpp"
#include "torture/rig/hang_guard.hpp"

namespace dlock::cli::test {

namespace {

[[noreturn]] void become(std::vector<std::string>& command, std::vector<std::string>& environment,
                         const Process::Options& options, int in, int out, int err) {
  (void)::dup2(in, 0);
  (void)::dup2(out, 1);
  (void)::dup2(err, 2);
  // Descriptors that the test program itself happens to have are not meant for the process.
  (void)::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  sigset_t mask;
  ::sigemptyset(&mask);
  (void)::sigprocmask(SIG_SETMASK, &mask, nullptr);
  if (!options.directory.empty() && ::chdir(options.directory.c_str()) != 0) ::_exit(125);
  std::vector<char*> arguments;
  for (std::string& text : command) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  std::vector<char*> variables;
  for (std::string& text : environment) variables.push_back(text.data());
  variables.push_back(nullptr);
  ::execvpe(arguments[0], arguments.data(), variables.data());
  ::_exit(125);
}

std::vector<std::string> environment_for(const Process::Options& options) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    if (name != "DLOCK_URL" && !options.environment.contains(name)) result.push_back(text);
  }
  for (const auto& [name, value] : options.environment) {
    if (value) result.push_back(name + "=" + *value);
  }
  return result;
}

void wait_readable(int fd) {
  pollfd source{.fd = fd, .events = POLLIN, .revents = 0};
  int ready = 0;
  do {
    ready = ::poll(&source, 1, dlock::rig::hang_guard_ms);
  } while (ready < 0 && errno == EINTR);
  if (ready != 1) throw std::runtime_error("hang: nothing came from the process under test");
}

// False at the end.
bool read_some(int fd, std::string& buffer) {
  wait_readable(fd);
  std::array<char, 4096> bytes;
  const ssize_t n = check(static_cast<int>(::read(fd, bytes.data(), bytes.size())), "read");
  buffer.append(bytes.data(), static_cast<std::size_t>(n));
  return n > 0;
}

UniqueFd open_pidfd(pid_t pid) {
  return UniqueFd(check(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)), "pidfd_open"));
}

}  // namespace

std::string dlock_path() {
  return DLOCK_TEST_COMMAND;
}
std::string probe_path() {
  return DLOCK_TEST_PROBE;
}

Process::Process(std::vector<std::string> command, const Options& options) {
  auto [in_read, in_write] = make_pipe();
  auto [out_read, out_write] = make_pipe();
  auto [err_read, err_write] = make_pipe();
  auto [exec_read, exec_write] = make_pipe();
  std::vector<std::string> environment = environment_for(options);
  // A signal that the test sends must meet the process with the mask that the test wants, never an earlier one.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  check(::pthread_sigmask(SIG_SETMASK, &all, &before), "pthread_sigmask");
  pid_ = ::fork();
  if (pid_ == 0) {
    become(command, environment, options, in_read.get(), out_write.get(), options.error.value_or(err_write.get()));
  }
  check(::pthread_sigmask(SIG_SETMASK, &before, nullptr), "pthread_sigmask");
  check(pid_, "fork");
  exec_write.reset();
  char none = 0;
  check(static_cast<int>(::read(exec_read.get(), &none, 1)), "read");  // its end says that exec has happened
  in_ = std::move(in_write);
  out_ = std::move(out_read);
  err_ = std::move(err_read);
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      in_(std::move(other.in_)),
      out_(std::move(other.out_)),
      err_(std::move(other.err_)),
      out_buffer_(std::move(other.out_buffer_)),
      err_buffer_(std::move(other.err_buffer_)) {}

Process::~Process() {
  if (pid_ <= 0) return;
  (void)::kill(pid_, SIGKILL);
  (void)::waitpid(pid_, nullptr, 0);
}

std::string Process::next_line(UniqueFd& fd, std::string& buffer) {
  for (;;) {
    if (const auto end = buffer.find('\n'); end != std::string::npos) {
      std::string line = buffer.substr(0, end);
      buffer.erase(0, end + 1);
      return line;
    }
    if (!read_some(fd.get(), buffer)) throw std::runtime_error("no more output; so far: " + buffer + err_buffer_);
  }
}

std::string Process::line() {
  return next_line(out_, out_buffer_);
}
std::string Process::error_line() {
  return next_line(err_, err_buffer_);
}

void Process::signal(int signal) const {
  check(::kill(pid_, signal), "kill");
}

Finished Process::finish() {
  close_input();
  return finish_without_end_of_input();
}

Finished Process::finish_without_end_of_input() {
  while (out_ || err_) {
    std::array sources{pollfd{.fd = out_.get(), .events = POLLIN, .revents = 0},
                       pollfd{.fd = err_.get(), .events = POLLIN, .revents = 0}};
    const int ready = ::poll(sources.data(), sources.size(), dlock::rig::hang_guard_ms);
    if (ready == 0) throw std::runtime_error("hang: the process under test does not end");
    if (sources[0].revents != 0 && !read_some(out_.get(), out_buffer_)) out_.reset();
    if (sources[1].revents != 0 && !read_some(err_.get(), err_buffer_)) err_.reset();
  }
  const int status = wait();
  return {.status = status, .out = out_buffer_, .err = err_buffer_};
}

int Process::wait() {
  wait_readable(open_pidfd(pid_).get());
  int status = 0;
  check(::waitpid(pid_, &status, 0), "waitpid");
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Watched::Watched(pid_t pid) : fd_(open_pidfd(pid)) {}

bool Watched::wait_for_death() const {
  pollfd source{.fd = fd_.get(), .events = POLLIN, .revents = 0};
  return ::poll(&source, 1, dlock::rig::hang_guard_ms) == 1;
}

bool Watched::is_dead() const {
  pollfd source{.fd = fd_.get(), .events = POLLIN, .revents = 0};
  return ::poll(&source, 1, 0) == 1;
}

Finished run(std::vector<std::string> command) {
  return Process(std::move(command)).finish();
}

Finished run(std::vector<std::string> command, const Process::Options& options) {
  return Process(std::move(command), options).finish();
}

}  // namespace dlock::cli::test
