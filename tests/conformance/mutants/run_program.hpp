// Runs a program of the suite and collects what it says.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace dlock::conformance {

struct Finished {
  int status = -1;     // the exit status; -1: killed by a signal
  std::string output;  // on standard output and standard error
};

// Waits for the end; the guard is what the suite in that program takes for a hang.
[[nodiscard]] Finished run_program(std::vector<std::string> arguments, std::chrono::milliseconds guard);

}  // namespace dlock::conformance
