// A shell with job control, as far as dlock can tell: a session with a terminal, in which one command runs as the
// foreground job. The test types at the terminal and sees what a person would see.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "cli/system.hpp"

namespace dlock::cli::test {

class JobShell {
 public:
  // Starts the command as the foreground job. With input_redirected, its standard input is /dev/null.
  explicit JobShell(std::vector<std::string> command, bool input_redirected = false);
  JobShell(const JobShell&) = delete;
  JobShell& operator=(const JobShell&) = delete;
  ~JobShell();

  void type(const std::string& keys);
  // The next line that appears on the terminal, without its end. The terminal does not echo.
  std::string line();
  // Reads until that text has appeared.
  void await(const std::string& text);
  // What became of the job: "stopped" or "exited STATUS", as the shell's wait reports it. After it, the shell has the
  // terminal, or says "terminal is not mine" instead.
  std::string job_news();
  // "fg": the job gets the terminal and goes on.
  void foreground();

 private:
  pid_t shell_ = -1;
  UniqueFd terminal_;
  UniqueFd news_;
  UniqueFd control_;
};

}  // namespace dlock::cli::test
