// The command line, taken apart.
#pragma once

#include <dlock/duration.hpp>
#include <dlock/lock_kind.hpp>

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

namespace dlock::cli {

enum class Verb { run, hold, elect, leader, status, list, break_lock, forget, doctor, init, backends, bench, torture };

// Of "dlock bench".
struct BenchArguments {
  std::vector<std::string> urls;       // empty: all that can be reached
  std::vector<std::string> scenarios;  // empty: all
  bool quick = false;
  std::optional<double> rate;
  std::string html;                  // empty: the usual name
  std::string json;                  // empty: none
  std::vector<std::string> compare;  // two files, or none

  [[nodiscard]] bool measures() const noexcept {
    return !urls.empty() || !scenarios.empty() || quick || rate || !html.empty() || !json.empty();
  }
};

// Of "dlock torture".
struct TortureArguments {
  double minutes = 1;
  std::optional<std::uint64_t> seed;
  std::string directory;  // empty: a new one here
  std::size_t workers = 4;
  std::string kind = "lock";  // of the locks: "lock", "read-write", "semaphore", "semaphore=N"
  std::string check;          // a directory whose history is checked; empty: things are broken
  std::string plan;           // of a worker, for dlock's own use
  bool breaks = false;        // an option of breaking things was given
};

struct Arguments {
  Verb verb = Verb::run;
  std::optional<std::string> url;
  std::vector<std::string> names;  // one; run, hold: several are taken as one; forget: these, or none with `idle`
  LockKind kind = LockKind::lock;
  Mode mode = Mode::exclusive;
  std::string value;                                 // elect: what others see of this candidate
  bool once = false;                                 // elect: one term
  bool follow = false;                               // leader: print each change
  std::int64_t permits = 0;                          // of a semaphore that is to be taken
  Duration wait = forever;                           // zero: try
  Duration connect_wait = std::chrono::seconds(30);  // for a service that was never reached; forever with --wait
  std::optional<Duration> lease;
  Duration hold_at_least = {};
  Duration kill_after = std::chrono::seconds(5);
  bool quiet = false;
  bool verbose = false;
  std::string json_file;               // run: where its account goes; empty: none
  std::string metrics_file;            // run, elect, hold: where gauges of the last run go; empty: nowhere
  std::optional<int> conflict_status;  // run: instead of 75 and 76
  bool until_eof = false;              // hold: until standard input ends
  std::optional<pid_t> parent;         // hold: until that process ends
  bool exit_code = false;              // status: whether it is held is the exit status
  bool json = false;
  bool held_only = false;
  bool names_only = false;
  bool yes = false;
  std::optional<Duration> idle;      // forget: all names that were not taken for so long
  std::vector<std::string> command;  // run: what follows "--"
  BenchArguments bench;
  TortureArguments torture;

  // Where there is only one.
  [[nodiscard]] const std::string& name() const { return names.front(); }
};

// The command line is wrong. The text never contains a password.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What --help or --version print.
struct Answer {
  std::string text;
};

// Throws UsageError.
[[nodiscard]] std::variant<Arguments, Answer> parse_arguments(const std::vector<std::string>& words);

// The text with every word of the command line that is or contains a URL cut down to its scheme.
[[nodiscard]] std::string without_urls(std::string text, const std::vector<std::string>& words);

}  // namespace dlock::cli
