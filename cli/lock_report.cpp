#include "cli/lock_report.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/output.hpp"
#include "cli/text.hpp"

namespace dlock::cli {

namespace {

bool many_may_hold(std::string_view kind) {
  return kind == kind_word(LockKind::read_write) || kind == kind_word(LockKind::semaphore);
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

// Of a lock, or of one of its holders.
template <class Info>
void add_lease(Json& json, const Info& info) {
  json["token"] = info.token.value() == 0 ? Json() : Json(info.token.value());
  json["remaining_ms"] = info.remaining ? Json(*info.remaining / std::chrono::milliseconds(1)) : Json();
}

Json holder_json(const HolderInfo& holder) {
  Json json{{"holder", text_or_null(holder.holder)}, {"mode", holder.mode == Mode::shared ? "shared" : "exclusive"}};
  add_lease(json, holder);
  return json;
}

}  // namespace

std::optional<WallTime> taken_at(const LockInfo& info, const Capabilities& capabilities) {
  const std::uint64_t token = info.token.value();
  // If there are several holders, each has its own token.
  const bool known = info.held && !many_may_hold(kind_word(info.kind)) && token != 0 &&
                     capabilities.fencing == FencingDurability::wall_clock &&
                     token <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (!known) return std::nullopt;
  return WallTime(std::chrono::microseconds(token));
}

Json to_json(const LockInfo& info) {
  Json json{{"name", info.name}, {"kind", kind_word(info.kind)}, {"held", info.held}};
  json["holder"] = text_or_null(info.holder);
  add_lease(json, info);
  json["waiters"] = info.waiters ? Json(*info.waiters) : Json();
  json["holders"] = Json::array();
  for (const HolderInfo& holder : info.holders) json["holders"].push_back(holder_json(holder));
  if (info.holders.empty() && info.held && !many_may_hold(kind_word(info.kind))) {
    json["holders"].push_back(holder_json({.holder = info.holder, .token = info.token, .remaining = info.remaining}));
  }
  if (info.kind == LockKind::semaphore) json["permits"] = info.permits == 0 ? Json() : Json(info.permits);
  if (info.kind == LockKind::election) json["value"] = info.held ? Json(info.value) : Json();
  return json;
}

Json to_json(const LockInfo& info, const Capabilities& capabilities) {
  Json json = to_json(info);
  Json& since = json["since"];
  if (const auto taken = taken_at(info, capabilities)) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(*taken);
    since = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)));
  }
  return json;
}

// ---- For people
// ------------------------------------------------------------------------------------------------------

namespace {

// "": the lock has no such member, or it is null or empty.
std::string value_of(const Json& lock, const char* key) {
  const auto found = lock.find(key);
  if (found == lock.end() || found->is_null()) return {};
  return found->is_string() ? found->get<std::string>() : found->dump();
}

std::string value_or(const Json& lock, const char* key, std::string_view otherwise) {
  std::string value = value_of(lock, key);
  return value.empty() ? std::string(otherwise) : value;
}

Table::Cell state(const Json& lock) {
  if (!lock["held"]) return {"free", Style::green};
  const Json& holders = lock["holders"];
  return {!holders.empty() && holders.front()["mode"] == "shared" ? "shared" : "held", Style::yellow};
}

std::string permits(const Json& lock) {
  const std::string all = value_of(lock, "permits");
  return all.empty() ? "-" : fmt::format("{} of {}", lock["holders"].size(), all);
}

std::string remaining(const Json& lease) {
  return for_people(std::chrono::milliseconds(lease["remaining_ms"].get<std::int64_t>()));
}

Table::Cell holders(const Json& lock) {
  std::string text;
  for (const Json& holder : lock["holders"]) {
    text += (text.empty() ? "" : ", ") + value_or(holder, "holder", "unknown");
  }
  return {text.empty() ? "-" : text};
}

// "2025-11-21T10:11:12Z" in a form for people.
std::string moment(std::string since) {
  since.replace(since.find('T'), 1, " ");
  since.replace(since.find('Z'), 1, " UTC");
  return since;
}

void add_holders(Table& table, const Json& lock) {
  const char* title = "held by";
  for (const Json& holder : lock["holders"]) {
    std::string lease = "token " + value_or(holder, "token", "-");
    if (!holder["remaining_ms"].is_null()) lease += ", " + remaining(holder);
    table.add({{std::exchange(title, "")}, {value_or(holder, "holder", "unknown")}, {lease}});
  }
}

}  // namespace

std::string status_text(const Json& lock) {
  const bool held = lock["held"];
  const bool many = many_may_hold(lock["kind"].get<std::string>());
  Table table;
  const auto add = [&](const char* title, const std::string& text) { table.add({{title}, {text}}); };
  add("name", lock["name"]);
  if (lock["kind"] != kind_word(LockKind::lock)) add("kind", lock["kind"]);
  table.add({{"state"}, state(lock)});
  if (const std::string taken = permits(lock); taken != "-") add("permits", taken + " are taken");
  if (held && lock.contains("value")) add("value", value_or(lock, "value", "-"));
  if (held && many) add_holders(table, lock);
  if (held && !many) add("holder", value_or(lock, "holder", "unknown"));
  const std::string token = value_of(lock, "token");
  if (!token.empty() && !(many && held)) add(held ? "token" : "last token", token);
  if (const std::string since = value_of(lock, "since"); !since.empty()) add("since", moment(since));
  if (!many && !lock["remaining_ms"].is_null()) add("remaining", remaining(lock));
  if (const std::string waiters = value_of(lock, "waiters"); !waiters.empty()) add("waiters", waiters);
  return table.to_string();
}

std::string list_text(const Json& locks) {
  if (locks.empty()) return {};
  const Json& first = locks.front();
  struct Column {
    const char* title;
    Table::Cell (*cell)(const Json& lock);
  };
  std::vector<Column> columns{{"NAME", [](const Json& lock) { return Table::Cell{lock["name"]}; }}, {"STATE", state}};
  if (first.contains("permits"))
    columns.push_back({"PERMITS", [](const Json& lock) { return Table::Cell{permits(lock)}; }});
  columns.push_back({"TOKEN", [](const Json& lock) { return Table::Cell{value_or(lock, "token", "-")}; }});
  columns.push_back({many_may_hold(first["kind"].get<std::string>()) ? "HOLDERS" : "HOLDER", holders});
  if (first.contains("value")) {
    columns.push_back({"VALUE", [](const Json& lock) { return Table::Cell{value_or(lock, "value", "-")}; }});
  }
  Table table;
  std::vector<Table::Cell> row;
  row.reserve(columns.size());
  for (const Column& column : columns) row.push_back({column.title, Style::bold});
  table.add(row);
  for (const Json& lock : locks) {
    row.clear();
    for (const Column& column : columns) row.push_back(column.cell(lock));
    table.add(row);
  }
  return table.to_string();
}

}  // namespace dlock::cli
