// A child process, whose output is read, and which is never left behind.
//
//   ChildProcess server({"redis-server", config});
//   if (!server.wait_for_output("Ready to accept connections")) throw std::runtime_error(server.output());
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "torture/rig/system_call.hpp"

namespace dlock::rig {

class ChildProcess {
 public:
  using Condition = std::function<bool(const std::string& output)>;

  // Starts command[0], found in PATH, with this process's environment and these variables, "NAME=value". The kernel
  // kills the child when the thread that started it ends, so that a crash leaves nothing behind: start it on a thread
  // that lives long enough. It has its own process group: Ctrl-C is not sent to it.
  explicit ChildProcess(std::vector<std::string> command, std::vector<std::string> variables = {});
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  // Kills it if it is still running, and reaps it.
  ~ChildProcess();

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] bool running() const;

  // Its output so far, standard output and error.
  [[nodiscard]] std::string output() const;
  // Waits for this text in its output. False: it closed its output before, or the hang guard ended the wait.
  [[nodiscard]] bool wait_for_output(const std::string& text) const;
  // Waits until the condition holds for its output. False: it closed its output before, the time has passed, or a stop
  // was requested.
  [[nodiscard]] bool wait_until(const Condition& condition, std::chrono::nanoseconds limit,
                                const std::stop_token& stop = {}) const;
  [[nodiscard]] bool output_ended() const;
  // Waits until it has closed its output, normally by ending.
  void wait_for_output_end() const;

  void signal(int number) const;
  // freeze() stops it with SIGSTOP and waits until it is stopped; the other continues it.
  void freeze() const;
  void thaw() const;
  // Whether it is stopped.
  [[nodiscard]] bool frozen() const;

  // Waits for its end; call it once. Returns the status as shells do: 128 + signal. Throws when the hang guard ends the
  // wait.
  int wait();

 private:
  void read_output(int fd);

  pid_t pid_ = -1;
  UniqueFd stop_;
  mutable std::mutex mutex_;
  mutable std::condition_variable_any printed_;
  std::string output_;
  bool output_ended_ = false;
  std::jthread reader_;
};

// Runs a command to its end. Throws, with its output, unless it ends with status 0.
std::string run_command(std::vector<std::string> command);

}  // namespace dlock::rig
