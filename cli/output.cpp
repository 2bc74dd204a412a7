#include "cli/output.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>
#include <utility>

#include <dlock/info.hpp>

#include "cli/message_queue.hpp"
#include "cli/system.hpp"

namespace dlock::cli {

namespace {

std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// More than a person reads; enough for hours of failures.
constexpr std::size_t room_for_messages = 64 * 1024;
// If no message was written for this long, nothing reads them.
constexpr std::chrono::seconds patience_with_readers{1};

MessageQueue& messages() {
  static MessageQueue queue(
      [](std::string_view line) {
        (void)write_all(STDERR_FILENO, line);  // a loss of standard error cannot be reported
      },
      room_for_messages);
  return queue;
}

OutputError output_failure(int error) {
  return OutputError{std::string("cannot write standard output: ") + std::strerror(error)};
}

}  // namespace

void say(std::string_view text) noexcept {
  try {
    std::string line = "dlock: ";
    line += printable(text);
    line += '\n';
    messages().push(std::move(line));
  } catch (const std::bad_alloc&) {
    messages().drop();
  }
}

void start_messages() {
  messages().start();
}

void flush_messages() noexcept {
  messages().flush(patience_with_readers);
}

void print(std::string_view text) {
  flush_messages();
  if (!write_all(STDOUT_FILENO, text)) throw output_failure(errno);
}

// Outlives the Printing if nothing reads the output.
struct Printing::State {
  std::string text;
  Event done;
  std::atomic<int> error = 0;  // set before `done`
};

Printing::Printing(std::string text) : state_(std::make_shared<State>()) {
  flush_messages();
  state_->text = std::move(text);
  std::thread([state = state_] {
    if (!write_all(STDOUT_FILENO, state->text)) state->error = errno;
    state->done.notify();
  }).detach();
}

int Printing::done_fd() const noexcept {
  return state_->done.fd();
}

void Printing::check() const {
  if (state_->error != 0) throw output_failure(state_->error);
}

void print_lines(std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines += printable(text.substr(0, end));
    if (end != std::string_view::npos) lines += '\n';
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  print(lines);
}

bool coloured() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return (no_color == nullptr || *no_color == '\0') && term != nullptr && std::string_view(term) != "dumb" &&
         ::isatty(STDOUT_FILENO) == 1;
}

std::string styled(Style style, std::string_view text) {
  static constexpr std::array<std::string_view, 5> starts{"", "\033[1m", "\033[32m", "\033[33m", "\033[31m"};
  const std::string_view start = starts.at(static_cast<std::size_t>(style));
  if (start.empty() || !coloured()) return std::string(text);
  std::string result(start);
  result += text;
  result += "\033[0m";
  return result;
}

void Table::add(std::vector<Cell> row) {
  for (Cell& cell : row) cell.text = printable(cell.text);
  rows_.push_back(std::move(row));
}

std::string Table::to_string() const {
  std::vector<std::size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i].text));
  }
  std::string result;
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      result += styled(row[i].style, row[i].text);
      if (i + 1 < row.size()) result.append(widths[i] - width(row[i].text) + 2, ' ');
    }
    result += '\n';
  }
  return result;
}

}  // namespace dlock::cli
