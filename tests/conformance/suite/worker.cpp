#include "suite/worker.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <stdexcept>
#include <system_error>
#include <utility>

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

}  // namespace

std::string milliseconds(std::chrono::nanoseconds lease) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(lease).count());
}

Worker::Worker(const std::string& url, const std::string& label, const Kind& kind, std::chrono::nanoseconds lease) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) throw failure("socketpair");
  socket_ = ends[0];
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::array<std::string, 6> arguments{"/proc/self/exe", "--dlock-conformance-worker", url, label,
                                       kind.name,        milliseconds(lease)};
  std::array<char*, 7> argv{arguments[0].data(),
                            arguments[1].data(),
                            arguments[2].data(),
                            arguments[3].data(),
                            arguments[4].data(),
                            arguments[5].data(),
                            nullptr};
  errno = posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
  const int error = errno;
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) {
    close(socket_);
    throw std::system_error(error, std::system_category(), "cannot start a worker process");
  }
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
