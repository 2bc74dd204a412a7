#include "cli/metrics.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "cli/arguments.hpp"
#include "cli/exit_code.hpp"
#include "cli/output.hpp"
#include "cli/report_file.hpp"
#include "cli/system.hpp"
#include "cli/text.hpp"
#include "cli/unique_fd.hpp"

namespace dlock::cli {

namespace {

struct Metric {
  std::string_view name;
  std::string_view type;
  std::string_view help;
};

constexpr std::string_view runs = "dlock_runs_total";
constexpr std::string_view failures = "dlock_failed_runs_total";
constexpr std::string_view waits = "dlock_waits_total";
constexpr std::string_view conflicts = "dlock_conflicts_total";
constexpr std::string_view errors = "dlock_errors_total";
constexpr std::string_view losses = "dlock_losses_total";
constexpr std::string_view seconds_waited = "dlock_wait_seconds_total";
constexpr std::string_view seconds_held = "dlock_hold_seconds_total";
constexpr std::string_view last_status = "dlock_last_exit_status";
constexpr std::string_view last_success = "dlock_last_success_timestamp_seconds";

constexpr std::array known{
    Metric{runs, "counter", "Commands that were started under the lock, or times that it was held by hand."},
    Metric{failures, "counter", "Of these, how many did not end with status 0."},
    Metric{waits, "counter", "Attempts to take the lock, however they ended."},
    Metric{conflicts, "counter", "Attempts that ended because another client held the lock."},
    Metric{errors, "counter", "Attempts that ended with an error, such as a lock service out of reach."},
    Metric{losses, "counter", "Locks that were lost while they were in use."},
    Metric{seconds_waited, "counter", "Time spent waiting for the lock."},
    Metric{seconds_held, "counter", "Time for which the lock was held."},
    Metric{last_status, "gauge", "Status that dlock exited with the last time."},
    Metric{last_success, "gauge", "When a command last ended with status 0 under the lock."},
};

bool is_known(std::string_view name) {
  return std::ranges::find(known, name, &Metric::name) != known.end();
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\' || c == '"') result += '\\';
    if (c == '\n') {
      result += "\\n";
    } else {
      result += c;
    }
  }
  return result;
}

std::string labels(const std::string& name, LockKind kind) {
  return fmt::format(R"(name="{}",kind="{}")", escaped(name), kind_word(kind));
}

// Removes the text from the front; false: it is not there.
bool skip(std::string_view& text, std::string_view front) {
  if (!text.starts_with(front)) return false;
  text.remove_prefix(front.size());
  return true;
}

// Removes a label's value and the quotation mark at its end.
bool skip_value(std::string_view& text) {
  while (!text.empty()) {
    const char c = text.front();
    const bool escape = c == '\\';
    if (escape && (text.size() < 2 || std::string_view("\\\"n").find(text[1]) == std::string_view::npos)) return false;
    text.remove_prefix(escape ? 2 : 1);
    if (c == '"') return true;
  }
  return false;
}

double rounded(double seconds) {
  constexpr double milli = 1000;
  return std::round(seconds * milli) / milli;
}

double in_seconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

// --- What is in the file ---------------------------------------------------------------------------------------------

bool Metrics::read_line(std::string_view line) {
  const auto name_end = std::min(line.find('{'), line.size());
  const std::string_view name = line.substr(0, name_end);
  if (!is_known(name)) return false;
  std::string_view rest = line.substr(name_end);
  if (!skip(rest, "{")) return false;
  const std::string_view labels = rest;
  if (!skip(rest, R"(name=")") || !skip_value(rest) || !skip(rest, R"(,kind=")") || !skip_value(rest)) return false;
  const std::size_t length = labels.size() - rest.size();
  if (!skip(rest, "} ")) return false;
  double value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (error != std::errc() || end != rest.data() + rest.size() || !std::isfinite(value) || value < 0) return false;
  values_[std::string(name)][std::string(labels.substr(0, length))] = value;
  return true;
}

bool Metrics::read(std::string_view text) {
  bool understood = true;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (!line.empty() && !line.starts_with('#') && !read_line(line)) understood = false;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return understood;
}

void Metrics::add(const Account& account, const std::vector<std::string>& names, LockKind kind,
                  std::chrono::system_clock::time_point now) {
  using Result = Account::Result;
  const bool started = account.command_status.has_value() || account.result == Result::ran;
  // A lock may also be lost when the command had ended (--hold-at-least).
  const bool success = started && account.status == 0;
  for (const std::string& name : names) {
    const std::string of = labels(name, kind);
    const auto count = [&](std::string_view metric, double by) {
      double& value = values_[std::string(metric)][of];
      value = rounded(value + by);
    };
    count(runs, started ? 1 : 0);
    count(failures, started && !success ? 1 : 0);
    count(waits, 1);
    count(conflicts, account.result == Result::conflict ? 1 : 0);
    count(errors, account.result == Result::failed ? 1 : 0);
    count(losses, account.result == Result::lost ? 1 : 0);
    count(seconds_waited, in_seconds(account.waited));
    count(seconds_held, in_seconds(account.held.value_or(std::chrono::nanoseconds::zero())));
    values_[std::string(last_status)][of] = account.status;
    if (success) values_[std::string(last_success)][of] = rounded(in_seconds(now.time_since_epoch()));
  }
}

std::string Metrics::text() const {
  std::string text;
  for (const Metric& metric : known) {
    const auto values = values_.find(metric.name);
    if (values == values_.end()) continue;
    text += fmt::format("# HELP {} {}\n# TYPE {} {}\n", metric.name, metric.help, metric.name, metric.type);
    for (const auto& [labels, value] : values->second) text += fmt::format("{}{{{}}} {}\n", metric.name, labels, value);
  }
  return text;
}

// --- The file --------------------------------------------------------------------------------------------------------

namespace {

constexpr std::size_t longest_file = std::size_t{16} << 20U;

// nullopt: there is none. Throws std::system_error.
std::optional<std::string> contents(const std::string& path) {
  // Not held up by a pipe that another user has put there.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd && errno == ENOENT) return std::nullopt;
  check(fd.get(), "open");
  std::string text;
  std::array<char, 65536> bytes;
  while (text.size() < longest_file) {
    const auto count = check(static_cast<int>(::read(fd.get(), bytes.data(), bytes.size())), "read");
    if (count == 0) break;
    text.append(bytes.data(), static_cast<std::size_t>(count));
  }
  return text;
}

// One update of the file at a time.
class Turn {
 public:
  // Makes the file if it is missing. Waits for that long, looking so often. Throws std::system_error.
  explicit Turn(const std::string& path, int most_looks = looks_of_an_update) {
    for (int looks = 0; !take(path); ++looks) {
      if (looks == most_looks) throw std::system_error(ETIMEDOUT, std::generic_category(), "flock");
      timespec pause{.tv_sec = 0, .tv_nsec = pause_ns};
      (void)::nanosleep(&pause, nullptr);  // interrupted: it looks sooner
    }
  }

 private:
  // False: another process updates it, or has just replaced it.
  bool take(const std::string& path) {
    const auto open = [&](int flags) {
      file_.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags, 0666));
    };
    open(0);
    if (!file_ && errno == ENOENT) open(O_CREAT | O_EXCL);
    if (!file_ && errno == EEXIST) return false;
    check(file_.get(), "open");
    if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) check(-1, "flock");
      return false;
    }
    struct stat locked {};
    struct stat found {};
    check(::fstat(file_.get(), &locked), "fstat");
    return ::stat(path.c_str(), &found) == 0 && found.st_dev == locked.st_dev && found.st_ino == locked.st_ino;
  }

  // Five seconds: an update takes milliseconds, but a process that makes one may have been stopped.
  static constexpr int looks_of_an_update = 500;
  static constexpr long pause_ns = 10'000'000;

  UniqueFd file_;
};

}  // namespace

MetricsFile::MetricsFile(std::string path) : path_(std::move(path)) {
  std::error_code ec;
  const auto status = std::filesystem::status(path_, ec);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw UsageError(fmt::format("--metrics: cannot write \"{}\": it is not a file", path_));
  }
  { const ReportFile writable("--metrics", path_); }
  try {
    (void)contents(path_);
    { const Turn turn(path_, 0); }
  } catch (const std::system_error& error) {
    if (error.code().value() == ETIMEDOUT) return;  // another update is being made
    throw UsageError(fmt::format("--metrics: cannot read \"{}\": {}", path_, error.code().message()));
  }
}

void MetricsFile::add(const Account& account, const std::vector<std::string>& names, LockKind kind) const {
  const Turn turn(path_);
  Metrics metrics;
  const auto earlier = contents(path_);
  if (earlier && !metrics.read(*earlier)) {
    say(fmt::format("warning: {} has lines that are not dlock's; they are left out, and counters may start anew",
                    path_));
  }
  metrics.add(account, names, kind, std::chrono::system_clock::now());
  ReportFile("--metrics", path_).write(metrics.text());
}

}  // namespace dlock::cli
