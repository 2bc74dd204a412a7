#include "suite/worker.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include <dlock/conformance/suite.hpp>
#include <dlock/dlock.hpp>

#include "suite/wait.hpp"

namespace dlock::conformance {

namespace {

std::system_error failure(const std::string& what) {
  return {errno, std::system_category(), what};
}

void wait_for_state_change(pid_t pid, int options) {
  while (waitpid(pid, nullptr, options) < 0) {
    if (errno != EINTR) throw failure("waitpid");
  }
}

// With this descriptor as its standard input and output, which is closed here; -1: with those of this process.
pid_t start_this_program(std::vector<std::string> arguments, int input_and_output = -1) {
  arguments.insert(arguments.begin(), "/proc/self/exe");
  std::vector<char*> argv;
  for (std::string& each : arguments) argv.push_back(each.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (input_and_output >= 0) {
    posix_spawn_file_actions_adddup2(&actions, input_and_output, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, input_and_output, STDOUT_FILENO);
  }
  pid_t pid = -1;
  const int error = posix_spawn(&pid, argv.front(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (input_and_output >= 0) close(input_and_output);
  if (error != 0) throw std::system_error(error, std::system_category(), "cannot start a worker process");
  return pid;
}

// Runs in the helper process: the other end of Worker.
class Servant {
 public:
  Servant(const std::string& url, ClientOptions options, const Kind& kind)
      : kind_(kind), client_(connect(url, std::move(options))) {}

  std::string serve(const std::string& line) {
    std::istringstream words(line);
    std::string command;
    words >> command;
    if (command == "acquire") return acquire(words);
    if (command == "release") return std::string("released ") + (lease_.release() ? "1" : "0");
    if (command == "held") return std::string("held ") + (lease_.held() ? "1" : "0");
    if (command == "cycle") return cycle(words);
    if (command == "count") return count(words);
    if (command == "spawn") return spawn();
    throw std::invalid_argument("unknown command \"" + line + "\"");
  }

 private:
  std::string acquire(std::istringstream& words) {
    std::string name;
    long lease_ms = 0;
    words >> name >> lease_ms;
    AcquireOptions options;
    if (lease_ms > 0) options.lease = std::chrono::milliseconds(lease_ms);
    const auto lock = kind_.make(client_, name);
    lease_ = lock->acquire(options);
    return "granted " + std::to_string(lease_.token().value()) + " " + std::to_string(valid_for_ms());
  }

  [[nodiscard]] long valid_for_ms() const {
    if (lease_.valid_until() == TimePoint::max()) return 0;
    return std::chrono::ceil<std::chrono::milliseconds>(lease_.valid_until() - LeaseClock::now()).count();
  }

  std::string cycle(std::istringstream& words) {
    std::string name;
    int times = 0;
    words >> name >> times;
    const auto lock = kind_.make(client_, name);
    std::string answer = "tokens";
    for (int i = 0; i < times; ++i) {
      const Lease lease = lock->acquire({});
      answer += " " + std::to_string(lease.token().value());
    }
    return answer;
  }

  std::string count(std::istringstream& words) {
    std::string name;
    std::string file;
    int times = 0;
    words >> name >> file >> times;
    const auto lock = kind_.make(client_, name);
    for (int i = 0; i < times; ++i) {
      const Lease lease = lock->acquire({});
      long value = 0;
      std::ifstream(file) >> value;
      std::ofstream(file) << value + 1;
    }
    return "counted";
  }

  static std::string spawn() {
    const pid_t pid = start_this_program({"--dlock-conformance-idle"});
    return "spawned " + std::to_string(pid);
  }

  const Kind& kind_;
  Client client_;
  Lease lease_;
};

int serve(const std::string& url, const ClientOptions& options, const std::string& kind_name) {
  const auto kind =
      std::find_if(kinds().begin(), kinds().end(), [&](const Kind& each) { return each.name == kind_name; });
  if (kind == kinds().end()) return 1;
  std::optional<Servant> servant;
  for (std::string line; std::getline(std::cin, line);) {
    try {
      if (!servant) servant.emplace(url, options, *kind);
      std::cout << servant->serve(line) << std::endl;
    } catch (const std::exception& e) {
      std::cout << "error " << e.what() << std::endl;
    }
  }
  return 0;
}

// Keeps whatever it inherited until the other end of its standard input is closed.
int idle() {
  pollfd input{STDIN_FILENO, 0, 0};
  while ((input.revents & POLLHUP) == 0) {
    if (poll(&input, 1, -1) < 0 && errno != EINTR) return 1;
  }
  return 0;
}

}  // namespace

std::optional<int> run_as_helper(int argc, char** argv) {
  const std::vector<std::string> arguments(argv, argv + argc);
  if (argc == 6 && arguments[1] == "--dlock-conformance-worker") {
    ClientOptions options{.label = arguments[3]};
    if (const long lease_ms = std::stol(arguments[5]); lease_ms > 0)
      options.lease = std::chrono::milliseconds(lease_ms);
    return serve(arguments[2], options, arguments[4]);
  }
  if (argc == 2 && arguments[1] == "--dlock-conformance-idle") return idle();
  return std::nullopt;
}

std::string milliseconds(std::chrono::nanoseconds lease) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(lease).count());
}

Worker::Worker(const std::string& url, const std::string& label, const Kind& kind, std::chrono::nanoseconds lease)
    : Worker() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) throw failure("socketpair");
  socket_ = ends[0];
  pid_ = start_this_program({"--dlock-conformance-worker", url, label, kind.name, milliseconds(lease)}, ends[1]);
}

Worker::Worker(Worker&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      pid_(std::exchange(other.pid_, -1)),
      received_(std::move(other.received_)),
      valid_for_(other.valid_for_) {}

Worker::~Worker() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);  // ours and not yet waited for, so the id is still its own
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (socket_ >= 0) close(socket_);
}

void Worker::send(const std::string& command) {
  const std::string line = command + "\n";
  if (::send(socket_, line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size())) {
    throw failure("cannot send to a worker process");
  }
}

std::string Worker::receive() {
  for (;;) {
    if (const auto end = received_.find('\n'); end != std::string::npos) {
      std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      if (line.starts_with("error ")) throw std::runtime_error("worker process: " + line);
      return line;
    }
    pollfd ready{socket_, POLLIN, 0};
    const int count = poll(&ready, 1, static_cast<int>(guard().count()));
    if (count == 0) throw Hang("a worker process does not answer");
    if (count < 0 && errno == EINTR) continue;
    std::array<char, 4096> buffer{};
    const ssize_t got = recv(socket_, buffer.data(), buffer.size(), 0);
    if (got <= 0) throw std::runtime_error("a worker process ended");
    received_.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

std::string Worker::ask(const std::string& command, const std::string& expected) {
  send(command);
  std::string answer = receive();
  if (!answer.starts_with(expected)) {
    throw std::runtime_error("a worker process answered \"" + answer + "\" to \"" + command + "\"");
  }
  return answer.substr(expected.size());
}

std::uint64_t Worker::acquire(const std::string& name, std::chrono::nanoseconds lease) {
  const std::string granted = ask("acquire " + name + " " + milliseconds(lease), "granted ");
  valid_for_ = std::chrono::milliseconds(std::stoll(granted.substr(granted.find(' '))));
  return std::stoull(granted);
}

void Worker::kill() {
  ::kill(pid_, SIGKILL);
  wait_for_state_change(std::exchange(pid_, -1), 0);
}

void Worker::stop() {
  ::kill(pid_, SIGSTOP);
  wait_for_state_change(pid_, WUNTRACED);
}

void Worker::resume() {
  ::kill(pid_, SIGCONT);
}

}  // namespace dlock::conformance
