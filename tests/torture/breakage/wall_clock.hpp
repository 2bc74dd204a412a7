// The wall clock of a child process, stepped while it runs; all of its other clocks go on as they are.
//
//   WallClock clock;
//   rig::ChildProcess child({"dlock", ...}, clock.variables());
//   clock.step(-3h);                                  // the child's CLOCK_REALTIME is three hours behind now
//
// By libfaketime, which puts itself before the C library's functions; it is the child's own clock that is stepped, not
// the machine's.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace dlock::torture {

class WallClock {
 public:
  // Whether it can be done; the reason if not. It cannot be done to programs that are built with sanitizers, which
  // replace the same functions.
  [[nodiscard]] static bool available(std::string& why_not);

  // Not stepped so far. Keeps what it says in a file in the directory. Throws std::system_error, std::runtime_error.
  explicit WallClock(const std::string& directory);
  WallClock(const WallClock&) = delete;
  WallClock& operator=(const WallClock&) = delete;
  ~WallClock();

  // What a child process must find in its environment.
  [[nodiscard]] std::vector<std::string> variables() const;

  // By so much, and by all the steps before; backwards if negative. Seen by the children at their next look at the
  // clock. Throws std::system_error.
  void step(std::chrono::seconds by);
  [[nodiscard]] std::chrono::seconds offset() const noexcept { return offset_; }

  // What libfaketime leaves in shared memory for a child that did not get to remove it, because it was killed.
  static void remove_traces(pid_t child) noexcept;

 private:
  void write() const;

  std::string library_;
  std::string file_;
  std::chrono::seconds offset_{};
};

}  // namespace dlock::torture
