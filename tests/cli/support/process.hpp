// A process under test, driven through pipes as a user would drive it. Nothing here sleeps: waiting is for output, for
// the end of a process, or for the hang guard, which fails the test.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/system.hpp"
#include "torture/rig/scratch_directory.hpp"

namespace dlock::cli::test {

// The programs under test.
[[nodiscard]] std::string dlock_path();
[[nodiscard]] std::string probe_path();

using dlock::rig::ScratchDirectory;

struct Finished {
  int status = -1;  // as a shell would say it: 128 + signal
  std::string out;
  std::string err;
};

class Process {
 public:
  struct Options {
    // Replace variables of the environment; nullopt removes one.
    std::map<std::string, std::optional<std::string>> environment = {};
    std::string directory = {};     // where it starts
    std::optional<int> error = {};  // a descriptor of ours that is its standard error instead of a pipe to us
  };

  explicit Process(std::vector<std::string> command) : Process(std::move(command), Options()) {}
  Process(std::vector<std::string> command, const Options& options);
  Process(Process&& other) noexcept;
  Process& operator=(Process&&) = delete;
  // Kills it if it is still there.
  ~Process();

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  void close_input() { in_.reset(); }
  // The next line of standard output (error) without its end; fails the test at its end.
  std::string line();
  std::string error_line();
  void signal(int signal) const;
  // Closes standard input, reads the rest of both outputs and waits for the end.
  Finished finish();
  // The same, but for the input.
  Finished finish_without_end_of_input();
  // Waits for the end only, leaving standard input open.
  int wait();

 private:
  std::string next_line(UniqueFd& fd, std::string& buffer);

  pid_t pid_ = -1;
  UniqueFd in_;
  UniqueFd out_;
  UniqueFd err_;
  std::string out_buffer_;
  std::string err_buffer_;
};

// Any process of this machine, watched without being its parent.
class Watched {
 public:
  explicit Watched(pid_t pid);
  // Waits until it is dead (a zombie counts). False: the hang guard ended the wait.
  [[nodiscard]] bool wait_for_death() const;
  [[nodiscard]] bool is_dead() const;

 private:
  UniqueFd fd_;
};

// Runs a command to its end.
[[nodiscard]] Finished run(std::vector<std::string> command);
[[nodiscard]] Finished run(std::vector<std::string> command, const Process::Options& options);

}  // namespace dlock::cli::test
