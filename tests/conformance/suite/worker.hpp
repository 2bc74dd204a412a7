// A different process on the same service, which gets its commands line by line. It runs the suite's own program, so
// that it has every backend registered there.
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
// The lease in the form of a worker's command.
[[nodiscard]] std::string milliseconds(std::chrono::nanoseconds lease);

class Worker {
 public:
  // kind: of its locks. The lease is its client's; zero: the default.
  Worker(const std::string& url, const std::string& label, const Kind& kind,
         std::chrono::nanoseconds lease = std::chrono::nanoseconds(0));
  Worker(Worker&& other) noexcept;
  Worker& operator=(Worker&&) = delete;
  // Kills it, if it is still running.
  ~Worker();

  void send(const std::string& command);
  // The next answer; throws Hang, or std::runtime_error when the worker ended or answered "error".
  [[nodiscard]] std::string receive();
  // Both; checks that the answer begins with `expected` and returns the rest.
  std::string ask(const std::string& command, const std::string& expected);
  // Returns the token.
  std::uint64_t acquire(const std::string& name, std::chrono::nanoseconds lease);
  // The remaining validity of the lease that it acquired last; zero: the process's lifetime.
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
