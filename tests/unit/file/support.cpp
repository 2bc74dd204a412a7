#include "support.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace dlock::file::test {

namespace {

int milliseconds_left(std::chrono::steady_clock::time_point end) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
  return static_cast<int>(std::max<std::chrono::milliseconds::rep>(left.count(), 0));
}

std::pair<int, int> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe2");
  return {ends[0], ends[1]};
}

}  // namespace

Helper::Helper(const std::vector<std::string>& arguments) {
  const auto [child_in, in] = make_pipe();
  const auto [out, child_out] = make_pipe();
  std::vector<std::string> words{DLOCK_FILE_TEST_HELPER};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(child_in, 0);
    ::dup2(child_out, 1);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ::close(child_in);
  ::close(child_out);
  in_ = in;
  out_ = out;
}

Helper::~Helper() {
  kill();
  (void)wait();
  proceed();
  ::close(out_);
}

std::string Helper::line() {
  const auto end = std::chrono::steady_clock::now() + hang_guard;
  for (;;) {
    if (const auto newline = buffered_.find('\n'); newline != std::string::npos) {
      std::string text = buffered_.substr(0, newline);
      buffered_.erase(0, newline + 1);
      return text;
    }
    pollfd ready{.fd = out_, .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, milliseconds_left(end)) <= 0) return "";
    std::array<char, 4096> chunk{};
    const ssize_t got = ::read(out_, chunk.data(), chunk.size());
    if (got <= 0) return "";
    buffered_.append(chunk.data(), static_cast<std::size_t>(got));
  }
}

void Helper::proceed() {
  if (in_ >= 0) ::close(std::exchange(in_, -1));
}

void Helper::kill() {
  if (pid_ > 0) ::kill(pid_, SIGKILL);
}

int Helper::wait() {
  if (pid_ <= 0) return -1;
  int status = 0;
  ::waitpid(std::exchange(pid_, -1), &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string in_child(const std::function<void()>& body) {
  const auto [out, in] = make_pipe();
  const pid_t pid = ::fork();
  if (pid == 0) {
    std::string problem;
    try {
      body();
    } catch (const std::exception& e) {
      problem = std::string("failed: ") + e.what();
    }
    problem += '\n';
    const bool told = ::write(in, problem.data(), problem.size()) == static_cast<ssize_t>(problem.size());
    ::_exit(told ? 0 : 1);
  }
  ::close(in);
  std::string text;
  const auto end = std::chrono::steady_clock::now() + hang_guard;
  for (;;) {
    pollfd ready{.fd = out, .events = POLLIN, .revents = 0};
    std::array<char, 4096> chunk{};
    if (::poll(&ready, 1, milliseconds_left(end)) <= 0) break;
    const ssize_t got = ::read(out, chunk.data(), chunk.size());
    if (got <= 0) break;
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
  ::close(out);
  ::kill(pid, SIGKILL);  // it has said what it had to say, or hangs
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (text.empty()) return "the child crashed or hung";
  text.pop_back();
  return text;
}

void require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

void require_permitted(bool done, const std::string& what) {
  const int error = errno;
  if (!done) require(false, not_permitted + what + ": " + std::strerror(error));
}

Failure failure_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return {e.code(), e.detail()};
  }
  return {};
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void write_file(const std::string& path, const std::string& content) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << content;
}

std::size_t open_descriptors(const std::string& ending) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // somebody closed it meanwhile
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (!gone && target.ends_with(ending)) ++count;
  }
  return ending.empty() ? count - 1 : count;  // without the iterator's own
}

OpenBackend::OpenBackend(const std::string& url, ClientOptions options)
    : client(connect(url, std::move(options), [this](BackendHost& host, const BackendConfig& config) {
        auto made = std::make_unique<FileBackend>(host, parse_location(config.url));
        backend = made.get();
        return made;
      })) {}

bool advance_until(ManualClock& clock, std::chrono::milliseconds limit, const std::function<bool()>& condition) {
  constexpr std::chrono::milliseconds step(1);
  for (std::chrono::milliseconds passed(0); passed < limit; passed += step) {
    if (condition()) return true;
    clock.advance(step);
    // Real time, for the kernel's events and the engine's thread to come through.
    std::promise<void> never;
    (void)never.get_future().wait_for(std::chrono::milliseconds(2));
  }
  return condition();
}

void Recorder::lost(const LostEvent& event) {
  const std::lock_guard lock(mutex_);
  losses_.push_back(event);
  heard_.notify_all();
}

void Recorder::warning(const WarningEvent& event) {
  const std::lock_guard lock(mutex_);
  warnings_.push_back(event);
  heard_.notify_all();
}

std::vector<LostEvent> Recorder::losses() const {
  std::unique_lock lock(mutex_);
  (void)heard_.wait_for(lock, hang_guard, [this] { return !losses_.empty(); });
  return losses_;
}

std::vector<WarningEvent> Recorder::warnings() const {
  std::unique_lock lock(mutex_);
  (void)heard_.wait_for(lock, hang_guard, [this] { return !warnings_.empty(); });
  return warnings_;
}

bool wait_for_loss(const Lease& lease) {
  std::promise<void> fired;
  auto future = fired.get_future();
  std::stop_callback on_loss(lease.lost(), [&] { fired.set_value(); });
  return future.wait_for(hang_guard) == std::future_status::ready;
}

}  // namespace dlock::file::test
