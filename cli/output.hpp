// dlock's output: results on standard output, everything else on standard error, one line per message. Text from a
// service may contain control characters for the terminal, so it is shown as printable() (dlock/info.hpp).
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace dlock::cli {

// Standard output could not be written.
class OutputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Writes "dlock: <text>", made printable, to standard error, in one piece and in the order of the calls; any thread.
// Does not wait: renewals and signals must not depend on a reader of standard error.
void say(std::string_view text) noexcept;

// Starts the thread that writes for say(). Throws std::system_error when the system refuses it.
void start_messages();
// Waits until all messages are written, but not for long if nothing reads them. Call it before any output that has to
// follow them, and before the process ends.
void flush_messages() noexcept;

// Flushes messages and writes to standard output as it is; throws OutputError.
void print(std::string_view text);

// print() for a caller that has to react to signals, for example, while nothing reads the output.
class Printing {
 public:
  // Begins. Throws std::system_error when the system refuses a thread.
  explicit Printing(std::string text);

  // Readable once all is written, or writing has failed.
  [[nodiscard]] int done_fd() const noexcept;
  // Call when done_fd() is readable. Throws OutputError if it failed.
  void check() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// The same, with each line made printable.
void print_lines(std::string_view text);

// Whether standard output may be coloured: a terminal, and neither NO_COLOR nor TERM=dumb.
[[nodiscard]] bool coloured();

enum class Style { plain, bold, green, yellow, red };

// The text in that style, if coloured().
[[nodiscard]] std::string styled(Style style, std::string_view text);

// Lines of cells, made printable, each column as wide as its widest cell. Widths count code points.
class Table {
 public:
  struct Cell {
    std::string text;
    Style style = Style::plain;
  };
  void add(std::vector<Cell> row);
  [[nodiscard]] std::string to_string() const;

 private:
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace dlock::cli
