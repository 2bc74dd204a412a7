// Columns for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace dlock::bench {

// The first column is aligned to the left, all others to the right. Lines may be shorter than others.
class TextTable {
 public:
  void add(std::vector<std::string> cells) { lines_.push_back(std::move(cells)); }

  [[nodiscard]] std::string text() const;

 private:
  std::vector<std::vector<std::string>> lines_;
};

// Columns that a text takes, as long as no character is wider than one.
[[nodiscard]] std::size_t width_of(std::string_view text) noexcept;

// At most so many columns of it; what is cut off becomes "…".
[[nodiscard]] std::string shortened(std::string_view text, std::size_t width);

// For a terminal: without control characters, which might do things to it.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace dlock::bench
