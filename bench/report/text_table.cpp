#include "bench/report/text_table.hpp"

#include <algorithm>
#include <string_view>

namespace dlock::bench {

namespace {

constexpr std::size_t gap = 2;

}  // namespace

std::string TextTable::text() const {
  std::vector<std::size_t> widths;
  for (const auto& line : lines_) {
    widths.resize(std::max(widths.size(), line.size()));
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], width_of(line[i]));
  }
  std::string result;
  for (const auto& line : lines_) {
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::string blanks(widths[i] - width_of(line[i]), ' ');
      if (i > 0) text += std::string(gap, ' ');
      text += i == 0 ? line[i] + blanks : blanks + line[i];
    }
    text.erase(text.find_last_not_of(' ') + 1);
    result += text + "\n";
  }
  return result;
}

// UTF-8: bytes that continue a character take no room.
std::size_t width_of(std::string_view text) noexcept {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string shortened(std::string_view text, std::size_t width) {
  if (width_of(text) <= width) return std::string(text);
  while (!text.empty() && width_of(text) >= width) text.remove_suffix(1);
  return std::string(text) + "…";
}

std::string printable(std::string_view text) {
  std::string result(text);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto byte = static_cast<unsigned char>(result[i]);
    if (byte < 0x20U || byte == 0x7FU) result[i] = ' ';
    // U+0080 to U+009F in UTF-8: some terminals obey these as well.
    const bool second_set = byte == 0xC2U && i + 1 < result.size() && static_cast<unsigned char>(result[i + 1]) < 0xA0U;
    if (second_set) result.replace(i, 2, " ");
  }
  return result;
}

}  // namespace dlock::bench
