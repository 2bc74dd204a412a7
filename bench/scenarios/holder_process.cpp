#include "bench/scenarios/holder_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <vector>

#include "bench/measure/samples.hpp"

namespace dlock::bench {

namespace {

constexpr int exec_failed = 127;
// After so long, a stop is noticed.
constexpr int poll_milliseconds = 50;

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

std::vector<std::string> environment_with_url(const std::string& url) {
  std::vector<std::string> result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (!std::string_view(*entry).starts_with("DLOCK_URL=")) result.emplace_back(*entry);
  }
  result.push_back("DLOCK_URL=" + url);
  return result;
}

std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// This process has other threads, so between fork and exec only async-signal-safe calls are made.
[[noreturn]] void become(char* const* arguments, char* const* environment, pid_t parent, int nothing, int output) {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != parent) ::_exit(exec_failed);
  (void)::setpgid(0, 0);  // so that Ctrl-C at the terminal is not for it
  if (::dup2(nothing, STDIN_FILENO) < 0 || ::dup2(output, STDOUT_FILENO) < 0 || ::dup2(output, STDERR_FILENO) < 0) {
    ::_exit(exec_failed);
  }
  sigset_t none;
  ::sigemptyset(&none);
  (void)::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execvpe(arguments[0], arguments, environment);
  constexpr std::string_view message = "cannot execute the program\n";
  (void)!::write(STDERR_FILENO, message.data(), message.size());  // nobody is left to tell if that fails
  ::_exit(exec_failed);
}

}  // namespace

HolderProcess::HolderProcess(const std::string& program, const std::string& url, const std::string& lease,
                             const std::string& name) {
  std::vector<std::string> arguments = {program, "hold", "--quiet", "--lease", lease, name};
  std::vector<std::string> environment = environment_with_url(url);
  const std::vector<char*> argument_pointers = pointers_to(arguments);
  const std::vector<char*> environment_pointers = pointers_to(environment);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing < 0) fail("open /dev/null");
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    (void)::close(nothing);
    fail("pipe2");
  }
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) become(argument_pointers.data(), environment_pointers.data(), parent, nothing, ends[1]);
  const int error = errno;
  (void)::close(nothing);
  (void)::close(ends[1]);
  output_ = ends[0];
  if (pid_ < 0) {
    (void)::close(output_);
    errno = error;
    fail("fork");
  }
}

HolderProcess::~HolderProcess() {
  kill();
  (void)::close(output_);
}

void HolderProcess::kill() noexcept {
  if (pid_ < 0) return;
  (void)::kill(pid_, SIGKILL);  // it has not been waited for, so the number is still its own
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

bool HolderProcess::has_token() const {
  std::string_view rest = printed_;
  for (auto end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
    const std::string_view line = rest.substr(0, end);
    if (!line.empty() && line.find_first_not_of("0123456789") == std::string_view::npos) return true;
    rest.remove_prefix(end + 1);
  }
  return false;
}

bool HolderProcess::await_lock(std::chrono::nanoseconds limit, const std::stop_token& stop) {
  const auto end = Clock::now() + limit;
  while (!stop.stop_requested()) {
    if (has_token()) return true;
    if (Clock::now() > end) throw std::runtime_error("the holder did not get the lock in time: " + printed_);
    pollfd source{.fd = output_, .events = POLLIN, .revents = 0};
    if (::poll(&source, 1, poll_milliseconds) < 0 && errno != EINTR) fail("poll");
    if (source.revents == 0) continue;
    std::array<char, 512> bytes;
    const ssize_t n = ::read(output_, bytes.data(), bytes.size());
    if (n < 0 && errno != EINTR) fail("read");
    if (n == 0) throw std::runtime_error("the holder ended: " + printed_);
    if (n > 0) printed_.append(bytes.data(), static_cast<std::size_t>(n));
  }
  return false;
}

}  // namespace dlock::bench
