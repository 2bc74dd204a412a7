#include "cli/lock_report.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "cli/output.hpp"
#include "cli/text.hpp"

namespace dlock::cli {

namespace {

bool many_may_hold(LockKind kind) {
  return kind == LockKind::read_write || kind == LockKind::semaphore;
}

std::string or_else(const std::string& text, std::string_view otherwise) {
  return text.empty() ? std::string(otherwise) : text;
}

std::string token_text(FencingToken token) {
  return token.value() == 0 ? "-" : std::to_string(token.value());
}

bool is_shared(const LockInfo& info) {
  return !info.holders.empty() && info.holders.front().mode == Mode::shared;
}

Table::Cell state(const LockInfo& info) {
  if (!info.held) return {"free", Style::green};
  return {is_shared(info) ? "shared" : "held", Style::yellow};
}

std::string permits_text(const LockInfo& info) {
  if (info.permits == 0) return "-";
  return fmt::format("{} of {}", info.holders.size(), info.permits);
}

// One of several holders.
std::string particulars(const HolderInfo& holder) {
  std::string text = "token " + token_text(holder.token);
  if (holder.remaining) text += ", " + for_people(*holder.remaining);
  return text;
}

void add_holders(Table& table, const LockInfo& info) {
  if (!many_may_hold(info.kind)) {
    table.add({{"holder"}, {or_else(info.holder, "unknown")}});
    return;
  }
  for (std::size_t i = 0; i < info.holders.size(); ++i) {
    const HolderInfo& holder = info.holders[i];
    table.add({{i == 0 ? "held by" : ""}, {or_else(holder.holder, "unknown")}, {particulars(holder)}});
  }
}

std::string moment(WallTime at) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(at);
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)));
}

}  // namespace

std::string utc_text(WallTime at) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(at);
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)));
}

std::vector<HolderInfo> all_holders(const LockInfo& info) {
  if (!info.holders.empty() || !info.held || many_may_hold(info.kind)) return info.holders;
  return {{.holder = info.holder, .token = info.token, .remaining = info.remaining}};
}

std::optional<WallTime> taken_at(const LockInfo& info, const Capabilities& capabilities) {
  const std::uint64_t token = info.token.value();
  // Of several holders, each has a token of its own.
  const bool known = info.held && !many_may_hold(info.kind) && token != 0 &&
                     capabilities.fencing == FencingDurability::wall_clock &&
                     token <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (!known) return std::nullopt;
  return WallTime(std::chrono::microseconds(token));
}

std::string status_text(const LockInfo& info, std::optional<WallTime> taken) {
  const bool many = many_may_hold(info.kind);
  Table table;
  table.add({{"name"}, {info.name}});
  if (info.kind != LockKind::lock) table.add({{"kind"}, {std::string(kind_word(info.kind))}});
  table.add({{"state"}, state(info)});
  if (info.permits != 0) table.add({{"permits"}, {permits_text(info) + " are taken"}});
  if (info.held && info.kind == LockKind::election) table.add({{"value"}, {or_else(info.value, "-")}});
  if (info.held) add_holders(table, info);
  if (info.token.value() != 0 && !(many && info.held)) {
    table.add({{info.held ? "token" : "last token"}, {token_text(info.token)}});
  }
  if (taken) table.add({{"since"}, {moment(*taken)}});
  if (info.remaining && !many) table.add({{"remaining"}, {for_people(*info.remaining)}});
  if (info.waiters) table.add({{"waiters"}, {std::to_string(*info.waiters)}});
  return table.to_string();
}

std::string list_text(const std::vector<LockInfo>& locks, LockKind kind) {
  if (locks.empty()) return {};
  const auto row = [kind](Table::Cell name, Table::Cell state, Table::Cell permits, Table::Cell token,
                          Table::Cell holders, Table::Cell value) {
    std::vector<Table::Cell> cells{std::move(name), std::move(state)};
    if (kind == LockKind::semaphore) cells.push_back(std::move(permits));
    cells.push_back(std::move(token));
    cells.push_back(std::move(holders));
    if (kind == LockKind::election) cells.push_back(std::move(value));
    return cells;
  };
  const auto title = [](const char* text) { return Table::Cell{text, Style::bold}; };
  Table table;
  table.add(row(title("NAME"), title("STATE"), title("PERMITS"), title("TOKEN"),
                title(many_may_hold(kind) ? "HOLDERS" : "HOLDER"), title("VALUE")));
  for (const LockInfo& info : locks) {
    std::string holders;
    for (const HolderInfo& holder : all_holders(info)) {
      if (!holders.empty()) holders += ", ";
      holders += or_else(holder.holder, "unknown");
    }
    table.add(row({info.name}, state(info), {permits_text(info)}, {token_text(info.token)}, {or_else(holders, "-")},
                  {or_else(info.value, "-")}));
  }
  return table.to_string();
}

}  // namespace dlock::cli
