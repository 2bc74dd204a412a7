// The common part of the programs: dlock, dlock-bench and dlock-torture.
#pragma once

#include <string>
#include <vector>

#include "cli/inherited.hpp"

namespace dlock::cli {

// For main(): hides the secrets of the command line, calls `work` with its words, prints its errors, and returns the
// exit status.
[[nodiscard]] int run_program(int argc, char** argv,
                              int (*work)(const std::vector<std::string>& words, Inherited& inherited));

// Executes a different program of dlock's, named by the first word: in this program's directory, else in PATH. If there
// is none, prints that and returns the exit status.
[[nodiscard]] int become(const std::vector<std::string>& words, const Inherited& inherited);

// The path of that program: in this program's directory, if it is there; else the name, for PATH.
[[nodiscard]] std::string path_of(const std::string& program);

}  // namespace dlock::cli
