#include "cli/metrics.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "cli/arguments.hpp"
#include "cli/output.hpp"
#include "cli/report_file.hpp"
#include "cli/system.hpp"
#include "cli/text.hpp"

namespace dlock::cli {

namespace {

// As in a metric's line, without the closing bracket.
std::string labels(std::string_view name, LockKind kind) {
  std::string escaped;
  for (const char c : name) {
    if (c == '\\' || c == '"') escaped += '\\';
    escaped += c == '\n' ? std::string_view("\\n") : std::string_view(&c, 1);
  }
  return fmt::format(R"({{name="{}",kind="{}")", escaped, kind_word(kind));
}

// nullopt: the text has no such value that dlock could have written.
std::optional<double> earlier_value(std::string_view text, std::string_view metric, const std::string& labels) {
  const std::string front = fmt::format("\n{}{}}} ", metric, labels);  // a comment is the first line
  const std::size_t at = text.find(front);
  if (at == std::string_view::npos) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data() + at + front.size(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value) || value < 0) return std::nullopt;
  return value;
}

bool has_lines_of_others(const std::string& text, const std::vector<std::string>& names, LockKind kind) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto has = [&](const std::string& name) { return line.find(labels(name, kind)) != std::string::npos; };
    if (!line.empty() && line.front() != '#' && std::ranges::none_of(names, has)) return true;
  }
  return false;
}

// The path must be a regular file, or not exist. Throws UsageError.
void require_file(const std::string& path) {
  std::error_code ec;
  const auto status = std::filesystem::status(path, ec);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw UsageError(fmt::format("--metrics: cannot write \"{}\": it is not a file", path));
  }
}

// Empty if there is no file. Throws std::system_error.
std::string contents(const std::string& path) {
  // Another user's pipe does not block.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd && errno == ENOENT) return {};
  check(fd.get(), "open");
  constexpr std::size_t longest_file = std::size_t{1} << 20U;
  std::string text(longest_file, '\0');
  text.resize(static_cast<std::size_t>(check(static_cast<int>(::read(fd.get(), text.data(), text.size())), "read")));
  return text;
}

}  // namespace

std::string metrics_text(const Account& account, const std::vector<std::string>& names, LockKind kind,
                         std::chrono::system_clock::time_point now, std::string_view earlier) {
  std::string text;
  // Without a value, keeps the earlier one.
  const auto gauge = [&](std::string_view metric, std::string_view help, std::optional<double> value,
                         std::string_view label = "") {
    std::string lines;
    for (const std::string& name : names) {
      const std::string of = labels(name, kind);
      const std::optional<double> known = value ? value : earlier_value(earlier, metric, of);
      if (known) lines += fmt::format("{}{}{}}} {}\n", metric, of, label, *known);
    }
    if (!lines.empty()) text += fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n{2}", metric, help, lines);
  };
  gauge("dlock_last_exit_status", "Status that dlock exited with the last time.", account.status);
  gauge("dlock_last_result", "Always 1; the label says what became of the last run, as the result of --json does.", 1,
        fmt::format(R"(,result="{}")", to_string(account.result)));
  gauge("dlock_last_wait_seconds", "How long the last run waited for the lock.", seconds(account.waited));
  if (account.held) gauge("dlock_last_hold_seconds", "How long the last run held the lock.", seconds(*account.held));
  // A lock may also be lost after the command has ended (--hold-at-least).
  const bool started = account.command_status || account.result == Account::Result::ran;
  const bool success = started && account.status == 0;
  gauge("dlock_last_success_timestamp_seconds", "When a command last ended with status 0 under the lock.",
        success ? std::optional(seconds(now.time_since_epoch())) : std::nullopt);
  return text;
}

MetricsFile::MetricsFile(std::string path) : path_(std::move(path)) {
  require_file(path_);
  { const ReportFile writable("--metrics", path_); }
  try {
    (void)contents(path_);
  } catch (const std::system_error& error) {
    throw UsageError(fmt::format("--metrics: cannot read \"{}\": {}", path_, error.code().message()));
  }
}

void MetricsFile::write(const Account& account, const std::vector<std::string>& names, LockKind kind) const {
  require_file(path_);  // a pipe would block the write
  const std::string earlier = contents(path_);
  if (has_lines_of_others(earlier, names, kind)) {
    say(fmt::format("warning: {} has lines of another job or program, which are lost; give each job its own file",
                    path_));
  }
  ReportFile("--metrics", path_).write(metrics_text(account, names, kind, std::chrono::system_clock::now(), earlier));
}

}  // namespace dlock::cli
