// Another process on the same service, told line by line what to do. It runs the program of the suite itself, so that
// every backend registered there is known to it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "suite/kind.hpp"

namespace dlock::conformance {

// Command               | answer
// ----------------------+---------------------------------------------------------------
// acquire NAME LEASE_MS | "granted TOKEN VALID_MS", when it was granted; the lease is renewed
// release               | "released 1", or 0 when the lease had been lost
// held                  | "held 1" or "held 0"
// cycle NAME TIMES      | "tokens T T T ...", the tokens of that many leases
// count NAME FILE TIMES | "counted", after adding 1 to the number in the file, under the lock each time
// spawn                 | "spawned PID", a child by fork and exec that lives until the other end hangs up
//
// Any of them may be answered by "error TEXT".
// A lease as a worker is told it.
[[nodiscard]] std::string milliseconds(std::chrono::nanoseconds lease);

class Worker {
 public:
  // Its locks are of that kind; the lease is its client's, zero for what it is by default.
  Worker(const std::string& url, const std::string& label, const Kind& kind,
         std::chrono::nanoseconds lease = std::chrono::nanoseconds(0));
  Worker(Worker&& other) noexcept;
  Worker& operator=(Worker&&) = delete;
  // Kills it, if it is still there.
  ~Worker();

  void send(const std::string& command);
  // The next answer; throws Hang, or std::runtime_error when the worker ended or answered "error".
  [[nodiscard]] std::string receive();
  // Both; checks that the answer begins with `expected` and returns what follows.
  std::string ask(const std::string& command, const std::string& expected);
  // Answers with the token.
  std::uint64_t acquire(const std::string& name, std::chrono::nanoseconds lease);
  // For how long the lease that it acquired last was valid then; zero: for as long as the process lives.
  [[nodiscard]] std::chrono::milliseconds valid_for() const noexcept { return valid_for_; }

  // SIGKILL, and waits for the end.
  void kill();
  // SIGSTOP, and waits until it has stopped.
  void stop();
  // SIGCONT.
  void resume();

 private:
  Worker() = default;

  int socket_ = -1;
  pid_t pid_ = -1;
  std::string received_;
  std::chrono::milliseconds valid_for_{0};
};

}  // namespace dlock::conformance
