// A process that holds a lock until it is killed.
#pragma once

#include <chrono>
#include <stop_token>
#include <string>

#include "torture/rig/child_process.hpp"

namespace dlock::bench {

// Start it on a thread that outlives it; see ChildProcess.
class HolderProcess {
 public:
  // Runs "PROGRAM hold --quiet --lease LEASE NAME". The URL goes into the environment, where other users do not see it.
  // Throws std::system_error.
  HolderProcess(const std::string& program, const std::string& url, const std::string& lease, const std::string& name);

  // Until it has the lock; false if a stop is requested before. Throws std::runtime_error, with what the program said,
  // if it ends, or if it takes longer than the limit.
  [[nodiscard]] bool await_lock(std::chrono::nanoseconds limit, const std::stop_token& stop) const;

  // With SIGKILL. Returns when it is dead. Once.
  void kill();

 private:
  rig::ChildProcess process_;
};

}  // namespace dlock::bench
