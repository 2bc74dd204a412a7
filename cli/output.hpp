// What dlock says: results on standard output, everything else on standard error, one line a message. What others wrote
// into a service may be meant for the terminal instead of its reader, so it is shown as printable() (dlock/info.hpp).
#pragma once

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

// Writes "dlock: <text>", made printable, to standard error, in one piece; from any thread.
void say(std::string_view text) noexcept;

// Writes to standard output as it is; throws OutputError.
void print(std::string_view text);

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
