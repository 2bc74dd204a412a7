// Numbers for those who want them exactly, or do not see pictures.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "bench/report/page/markup.hpp"
#include "bench/report/result.hpp"

namespace dlock::bench {

class HtmlTable {
 public:
  explicit HtmlTable(std::vector<std::string> head) : head_(std::move(head)) {}

  // The first cell is the head of the line.
  void add(std::string name, std::vector<Markup> cells);

  // A value for each line: bars from 0, and a mark at the best of those that are compared, and at what looks the same.
  struct Rated {
    std::optional<double> value;
    bool compared = true;
  };
  void rate(std::size_t column, const std::vector<Rated>& values, Better better);

  [[nodiscard]] bool empty() const noexcept { return lines_.empty(); }

  // Scrolls in a box of its own where it is wider than the page.
  [[nodiscard]] Markup scrolling(std::string_view name) const;
  // The same; on a narrow page, a block of lines for each line.
  [[nodiscard]] Markup stacking(std::string_view name) const;

 private:
  struct Entry {
    std::string name;
    std::vector<Markup> cells;
    std::vector<double> bars = {};  // percent of the longest one; 0: none
  };

  [[nodiscard]] Markup boxed(std::string_view css_class, std::string_view name) const;
  [[nodiscard]] Markup table(std::string_view css_class, std::string_view name) const;

  std::vector<std::string> head_;
  std::vector<Entry> lines_;
};

}  // namespace dlock::bench
