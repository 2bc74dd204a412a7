#include "cli/json.hpp"

#include <chrono>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include <dlock/info.hpp>

#include "cli/lock_report.hpp"
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

namespace {

Json text_or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

Json token_or_null(FencingToken token) {
  return token.value() == 0 ? Json() : Json(token.value());
}

Json milliseconds_or_null(const std::optional<std::chrono::nanoseconds>& time) {
  return time ? Json(std::chrono::duration_cast<std::chrono::milliseconds>(*time).count()) : Json();
}

Json to_json(const HolderInfo& holder) {
  return {{"holder", text_or_null(holder.holder)},
          {"mode", holder.mode == Mode::shared ? "shared" : "exclusive"},
          {"token", token_or_null(holder.token)},
          {"remaining_ms", milliseconds_or_null(holder.remaining)}};
}

}  // namespace

Json names_and_tokens(const std::vector<std::string>& names, const std::vector<std::uint64_t>& tokens) {
  if (names.size() > 1) return {{"names", names}, {"tokens", tokens}};
  return {{"name", names.front()}, {"token", tokens.empty() ? Json() : Json(tokens.front())}};
}

Json to_json(const LockInfo& info) {
  Json json = {{"name", info.name}, {"kind", kind_word(info.kind)}, {"held", info.held}};
  json["holder"] = text_or_null(info.holder);
  json["token"] = token_or_null(info.token);
  json["remaining_ms"] = milliseconds_or_null(info.remaining);
  json["waiters"] = info.waiters ? Json(*info.waiters) : Json();
  json["holders"] = Json::array();
  for (const HolderInfo& holder : all_holders(info)) json["holders"].push_back(to_json(holder));
  if (info.kind == LockKind::semaphore) json["permits"] = info.permits == 0 ? Json() : Json(info.permits);
  if (info.kind == LockKind::election) json["value"] = info.held ? Json(info.value) : Json();
  return json;
}

Json to_json(const Finding& finding) {
  return {{"severity", to_string(finding.severity)}, {"check", finding.check}, {"message", finding.message}};
}

}  // namespace dlock::cli
