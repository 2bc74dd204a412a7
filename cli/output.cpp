#include "cli/output.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#include <algorithm>
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
#include "cli/unique_fd.hpp"

namespace dlock::cli {

namespace {

std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// More than a person reads; enough for the trouble of hours.
constexpr std::size_t room_for_messages = 64 * 1024;
// After this long without a message written, nobody reads them.
constexpr std::chrono::seconds patience_with_readers{1};

std::atomic<bool> system_log = false;

constexpr std::string_view own_name = "dlock: ";

// The level of a message travels as a character before it, which no printable text has. What the queue itself says has
// none: something was dropped.
constexpr char mark(Level level) {
  return static_cast<char>(static_cast<int>(level) + 1);
}

int priority(char mark_of_level) {
  switch (mark_of_level) {
    case mark(Level::error):
      return LOG_ERR;
    case mark(Level::notice):
      return LOG_NOTICE;
    case mark(Level::info):
      return LOG_INFO;
    default:
      return LOG_WARNING;
  }
}

// One line without its end.
void write_message(std::string_view line) {
  const char first = line.empty() ? '\0' : line.front();
  if (first >= mark(Level::error) && first <= mark(Level::info)) line.remove_prefix(1);
  if (!system_log) {
    (void)write_all(STDERR_FILENO, std::string(line) + "\n");  // there is no better place to report that it is gone
    return;
  }
  if (line.starts_with(own_name)) line.remove_prefix(own_name.size());
  ::syslog(priority(first), "%.*s", static_cast<int>(line.size()), line.data());
}

MessageQueue& messages() {
  static MessageQueue queue(
      [](std::string_view text) {
        while (!text.empty()) {
          const std::size_t end = std::min(text.find('\n'), text.size());
          write_message(text.substr(0, end));
          text.remove_prefix(std::min(end + 1, text.size()));
        }
      },
      room_for_messages);
  return queue;
}

OutputError output_failure(int error) {
  return OutputError{std::string("cannot write standard output: ") + std::strerror(error)};
}

}  // namespace

void say(std::string_view text, Level level) noexcept {
  if (text.starts_with("warning: ")) level = Level::warning;
  try {
    std::string line(1, mark(level));
    line += own_name;
    line += printable(text);
    line += '\n';
    messages().push(std::move(line));
  } catch (const std::bad_alloc&) {
    messages().drop();
  }
}

void say_by_the_way(std::string_view text) noexcept {
  say(text, Level::info);
}

namespace {

// Why nobody reads what is sent to that socket; 0: somebody does.
int problem_with(const char* path) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string_view text = path;
  if (text.size() >= sizeof address.sun_path) return ENAMETOOLONG;
  text.copy(static_cast<char*>(address.sun_path), text.size());
  const UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return errno;
  const bool good = ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  return good || errno == EPROTOTYPE ? 0 : errno;  // syslog(3) also knows logs that read streams
}

}  // namespace

void log_to_system(const char* socket) {
  if (const int problem = problem_with(socket)) {
    say(std::string("warning: there is no system log (") + socket + ": " + std::strerror(problem) +
        "); messages go to standard error");
    return;
  }
  flush_messages();
  ::openlog("dlock", LOG_PID, LOG_DAEMON);
  system_log = true;
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

// Outlives the Printing where nobody reads.
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
  std::string_view start;
  switch (style) {
    case Style::plain:
      break;
    case Style::bold:
      start = "\033[1m";
      break;
    case Style::green:
      start = "\033[32m";
      break;
    case Style::yellow:
      start = "\033[33m";
      break;
    case Style::red:
      start = "\033[31m";
      break;
  }
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
