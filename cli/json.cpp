#include "cli/json.hpp"

#include <nlohmann/json.hpp>

#include <dlock/info.hpp>

namespace dlock::cli {

std::string json_line(const Json& value) {
  const auto text = [&](bool ascii) { return value.dump(-1, ' ', ascii, Json::error_handler_t::replace); };
  std::string line = text(false);
  // JSON requires escapes only below U+0020, but terminals obey more control characters.
  if (printable(line) != line) line = text(true);
  return line + "\n";
}

Json names_and_tokens(const std::vector<std::string>& names, const std::vector<std::uint64_t>& tokens) {
  if (names.size() > 1) return {{"names", names}, {"tokens", tokens}};
  return {{"name", names.front()}, {"token", tokens.empty() ? Json() : Json(tokens.front())}};
}

}  // namespace dlock::cli
