#include "cli/json.hpp"

#include <string>

#include <nlohmann/json.hpp>

#include <dlock/info.hpp>

#include "cli/output.hpp"
#include "cli/text.hpp"

namespace dlock::cli {

std::string json_line(const Json& value) {
  const auto text = [&](bool ascii) { return value.dump(-1, ' ', ascii, Json::error_handler_t::replace); };
  std::string line = text(false);
  // JSON has to escape what is below U+0020, but terminals obey more than that.
  if (printable(line) != line) line = text(true);
  return line + "\n";
}

void print_json(const Json& value) {
  print(json_line(value));
}

Json to_json(const LockInfo& info) {
  Json json = {{"name", info.name}, {"held", info.held}};
  json["holder"] = info.holder.empty() ? Json() : Json(info.holder);
  json["token"] = info.token.value() == 0 ? Json() : Json(info.token.value());
  json["remaining_ms"] =
      info.remaining ? Json(std::chrono::duration_cast<std::chrono::milliseconds>(*info.remaining).count()) : Json();
  json["waiters"] = info.waiters ? Json(*info.waiters) : Json();
  return json;
}

Json to_json(const Finding& finding) {
  return {{"severity", to_string(finding.severity)}, {"check", finding.check}, {"message", finding.message}};
}

}  // namespace dlock::cli
