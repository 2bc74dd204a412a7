#include "backends/common/sql/text.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <stdexcept>

namespace dlock::sql {

std::string fill(std::string_view text, const Fillings& fillings, FurtherFilling further) {
  constexpr std::string_view blanks = " \n";
  std::string out;
  while (!text.empty()) {
    const std::size_t plain = std::min(text.find_first_of(" \n{}"), text.size());
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    if (blanks.find(text.front()) != std::string_view::npos) {
      text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
      if (!out.empty() && !text.empty()) out += ' ';
      continue;
    }
    const std::size_t close = text.find('}');
    if (text.front() != '{' || close == std::string_view::npos) throw std::logic_error("a brace without its other");
    const std::string_view word = text.substr(1, close - 1);
    const auto found = std::ranges::find(fillings, word, &Fillings::value_type::first);
    const auto filling = found == fillings.end() ? further(word) : std::optional(found->second);
    if (!filling) throw std::logic_error("nothing to fill in for " + std::string(word));
    out += *filling;
    text.remove_prefix(close + 1);
  }
  return out;
}

std::string table_of(std::string_view table, LockKind kind) {
  constexpr std::array<std::string_view, 4> ends = {"", "_rw", "_sem", "_elect"};
  return std::string(table).append(ends.at(static_cast<std::size_t>(kind)));
}

}  // namespace dlock::sql
