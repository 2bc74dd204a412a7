#include "bench/report/page/markup.hpp"

namespace dlock::bench {

std::string escaped(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        // XML has no other control characters, not even as references.
        result += static_cast<unsigned char>(c) < 0x20U && c != '\n' && c != '\t' ? ' ' : c;
    }
  }
  return result;
}

}  // namespace dlock::bench
