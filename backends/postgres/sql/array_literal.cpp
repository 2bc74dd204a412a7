#include "backends/postgres/sql/statements.hpp"

namespace dlock::postgres {

// "8.15.2 Array Value Input": in quotes every character but two stands for itself.
std::string text_array(const std::vector<std::string_view>& elements) {
  std::string out = "{";
  for (const std::string_view element : elements) {
    if (out.size() > 1) out += ',';
    out += '"';
    for (const char c : element) {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    out += '"';
  }
  return out + '}';
}

std::string bigint_array(const std::vector<std::int64_t>& elements) {
  std::string out = "{";
  for (const std::int64_t element : elements) {
    if (out.size() > 1) out += ',';
    out += std::to_string(element);
  }
  return out + '}';
}

}  // namespace dlock::postgres
