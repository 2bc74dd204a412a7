#include "cli/bench/progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "cli/output.hpp"
#include "cli/system.hpp"

namespace dlock::cli {

namespace {

constexpr std::string_view clear_line = "\r\033[K";

std::size_t terminal_width() noexcept {
  constexpr std::size_t usual = 80;
  struct winsize size {};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : usual;
}

}  // namespace

BenchProgress::BenchProgress() noexcept : on_terminal_(::isatty(STDERR_FILENO) == 1) {}

BenchProgress::~BenchProgress() {
  clear();
}

void BenchProgress::step(const std::string& service, const std::string& what, std::chrono::nanoseconds remaining) {
  if (!on_terminal_) return;
  std::string line = fmt::format("{}: {}; {} to go", service, what, remaining_text(remaining));
  line.resize(std::min(line.size(), terminal_width() - 1));  // a wrapped line could not be cleared
  flush_messages();                                          // messages come before the line, not into it
  shown_ = write_all(STDERR_FILENO, std::string(clear_line) + line);
}

void BenchProgress::problem(const bench::Problem& problem) {
  clear();
  say(problem_text(problem));
}

void BenchProgress::clear() noexcept {
  if (shown_) (void)write_all(STDERR_FILENO, clear_line);  // a terminal that is gone needs none
  shown_ = false;
}

std::string remaining_text(std::chrono::nanoseconds remaining) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(remaining);
  if (seconds <= std::chrono::seconds(90)) return fmt::format("{} s", std::max<std::int64_t>(seconds.count(), 1));
  return fmt::format("{} min", std::chrono::round<std::chrono::minutes>(seconds).count());
}

std::string problem_text(const bench::Problem& problem) {
  return fmt::format("{}{}{}: {}", problem.service, problem.scenario.empty() ? "" : ", ", problem.scenario,
                     problem.message);
}

}  // namespace dlock::cli
