// A process that holds a lock until it is killed.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <stop_token>
#include <string>

namespace dlock::bench {

// Linux kills the process when the thread that started it ends, however that comes about, so it is never left behind:
// start it on a thread that outlives the object.
class HolderProcess {
 public:
  // Runs "PROGRAM hold --quiet --lease LEASE NAME". The URL goes into the environment, where other users do not see it.
  // Throws std::system_error.
  HolderProcess(const std::string& program, const std::string& url, const std::string& lease, const std::string& name);
  HolderProcess(const HolderProcess&) = delete;
  HolderProcess& operator=(const HolderProcess&) = delete;
  // Kills it, if it still runs.
  ~HolderProcess();

  // Until it has the lock; false if a stop is requested before. Throws std::runtime_error, with what the program said,
  // if it ends, or if it takes longer than the limit.
  [[nodiscard]] bool await_lock(std::chrono::nanoseconds limit, const std::stop_token& stop);

  // With SIGKILL. Returns when it is dead.
  void kill() noexcept;

 private:
  // Whether one of the lines that it has printed is a token.
  [[nodiscard]] bool has_token() const;

  pid_t pid_ = -1;
  int output_ = -1;
  std::string printed_;
};

}  // namespace dlock::bench
