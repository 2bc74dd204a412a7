#include "bench/report/page/html_table.hpp"

#include <algorithm>
#include <utility>

namespace dlock::bench {

void HtmlTable::add(std::string name, std::vector<Markup> cells) {
  lines_.push_back({std::move(name), std::move(cells)});
}

void HtmlTable::rate(std::size_t column, const std::vector<Rated>& values, Better better) {
  double longest = 0;
  const Rated* best = nullptr;
  std::string shown;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Rated& each = values[i];
    if (!each.value || !(*each.value >= 0)) continue;
    longest = std::max(longest, *each.value);
    const bool beaten =
        best != nullptr && (better == Better::lower ? *each.value >= *best->value : *each.value <= *best->value);
    if (!each.compared || beaten) continue;
    best = &each;
    shown = lines_[i].cells[column].str();
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    Entry& line = lines_[i];
    line.bars.resize(line.cells.size());
    if (longest > 0) line.bars[column] = 100 * std::clamp(values[i].value.value_or(0) / longest, 0.0, 1.0);
    Markup& cell = line.cells[column];
    const bool as_good = best != nullptr && values[i].compared && cell.str() == shown;
    if (as_good) cell = markup(R"(<b class="good"><span role="img" aria-label="best">★</span> {}</b>)", cell);
  }
}

Markup HtmlTable::table(std::string_view css_class, std::string_view name) const {
  Markup head;
  for (const std::string& each : head_) head += markup(R"(<th scope="col" role="columnheader">{}</th>)", each);
  Markup body;
  for (const Entry& line : lines_) {
    Markup cells;
    for (std::size_t i = 0; i < line.cells.size(); ++i) {
      // One element in the cell, so that label and value stand side by side.
      const double bar = i < line.bars.size() ? line.bars[i] : 0;
      cells +=
          markup(R"(<td role="cell" data-label="{}"{}><span>{}</span></td>)", i + 1 < head_.size() ? head_[i + 1] : "",
                 bar > 0 ? markup(R"( style="--bar: {:.1f}%")", bar) : Markup(), line.cells[i]);
    }
    body += markup(R"(<tr role="row"><th scope="row" role="rowheader">{}</th>{}</tr>)", line.name, cells);
  }
  // Roles, because a table whose lines are laid out as blocks is none any more for browsers.
  return markup(
      R"(<table class="{}" role="table" aria-label="{}"><thead role="rowgroup"><tr role="row">{}</tr></thead>)"
      R"(<tbody role="rowgroup">{}</tbody></table>)",
      css_class, name, head, body);
}

// To be scrolled with the keyboard it has to be reached by it.
Markup HtmlTable::boxed(std::string_view css_class, std::string_view name) const {
  return markup(R"(<div class="scroll" tabindex="0" role="region" aria-label="{}">{}</div>)", name,
                table(css_class, name));
}

Markup HtmlTable::scrolling(std::string_view name) const {
  return boxed("", name);
}

Markup HtmlTable::stacking(std::string_view name) const {
  return boxed("stack", name);
}

}  // namespace dlock::bench
