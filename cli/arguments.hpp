// The parsed command line.
#pragma once

#include <dlock/duration.hpp>
#include <dlock/lock_kind.hpp>

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cli/usage_error.hpp"

namespace dlock::cli {

enum class Verb { run, hold, elect, leader, status, list, break_lock, forget, doctor, init, backends };

struct Arguments {
  Verb verb = Verb::run;
  std::optional<std::string> url;
  std::vector<std::string> names;  // one; run, hold: several are acquired as one; forget: these, or none with `idle`
  LockKind kind = LockKind::lock;
  Mode mode = Mode::exclusive;
  std::string value;                                 // elect: the value that observers see
  bool once = false;                                 // elect: one term
  bool follow = false;                               // leader: print each change
  std::int64_t permits = 0;                          // of a semaphore to acquire
  Duration wait = forever;                           // zero: try
  Duration connect_wait = std::chrono::seconds(30);  // for a service that was not reached yet; forever with --wait
  std::optional<Duration> lease;
  Duration hold_at_least = {};
  Duration kill_after = std::chrono::seconds(5);
  bool quiet = false;
  bool verbose = false;
  std::string json_file;               // run: the file for its account; empty: none
  std::string metrics_file;            // run, elect, hold: the file for gauges of the last run; empty: none
  std::optional<int> conflict_status;  // run: instead of 75 and 76
  bool until_eof = false;              // hold: until standard input ends
  std::optional<pid_t> parent;         // hold: until that process ends
  bool exit_code = false;              // status: whether it is held is the exit status
  bool json = false;
  bool held_only = false;
  bool names_only = false;
  bool yes = false;
  std::optional<Duration> idle;      // forget: all names that were not acquired for so long
  std::vector<std::string> command;  // run: what follows "--"

  // If there is only one.
  [[nodiscard]] const std::string& name() const { return names.front(); }
};

// The output of --help or --version.
struct Answer {
  std::string text;
};

// Commands that are separate programs, with their line of help.
struct OtherProgram {
  const char* command;  // "bench": the program is dlock-bench
  const char* description;
};
inline constexpr std::array other_programs{
    OtherProgram{"bench", "Measure and compare lock services"},
    OtherProgram{"torture", "Inject faults around the locks, and check whether they keep their promises"},
};

// The words for such a program, "--help" for "help bench"; the program's name is the first. nullopt: the words are for
// dlock itself.
[[nodiscard]] std::optional<std::vector<std::string>> words_for_other_program(const std::vector<std::string>& words);

// Throws UsageError.
[[nodiscard]] std::variant<Arguments, Answer> parse_arguments(const std::vector<std::string>& words);

}  // namespace dlock::cli
