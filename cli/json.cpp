#include "cli/json.hpp"

#include <nlohmann/json.hpp>

#include "cli/output.hpp"
#include "cli/text.hpp"

namespace dlock::cli {

void print_json(const Json& value) {
  print(value.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
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
