// The frame of every program around its work: dlock, dlock-bench and dlock-torture.
#pragma once

#include <string>
#include <vector>

#include "cli/inherited.hpp"

namespace dlock::cli {

// For main(): hides the secrets of the command line, calls `work` with its words, says what it throws, and returns the
// exit status.
[[nodiscard]] int run_program(int argc, char** argv,
                              int (*work)(const std::vector<std::string>& words, Inherited& inherited));

// Becomes another program of dlock's, the first word: the one beside this program, else one in PATH. Returns what to
// exit with, and has said why, where there is none.
[[nodiscard]] int become(const std::vector<std::string>& words, const Inherited& inherited);

// The path of another program of dlock's: beside this one, where it is there; else the name, for PATH.
[[nodiscard]] std::string path_of(const std::string& program);

}  // namespace dlock::cli
