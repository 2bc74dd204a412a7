// A table of the row strategies, in the memory of a fake server: what row_template.cpp and sharing_statements.cpp say,
// once more in C++.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dlock/duration.hpp>
#include <dlock/lock_kind.hpp>
#include <dlock/spi/executor.hpp>

#include "backends/postgres/options.hpp"
#include "fake_connection.hpp"

namespace dlock::postgres {

class FakeLockTable {
 public:
  // Of what several may hold.
  struct Share {
    TimePoint expires_at;
    std::int64_t token = 0;
    std::int64_t weight = 0;
    std::string holder = {};
  };
  struct Row {
    std::string owner = {};  // empty: no owner's
    std::string holder = {};
    std::int64_t token = 0;
    std::int64_t version = 0;
    std::int64_t lease_ms = 0;
    TimePoint expires_at = TimePoint::min();
    TimePoint waiting_until = TimePoint::min();
    bool locked = false;  // by a transaction of another client's
    // Of what several may hold.
    std::int64_t permits = 0;
    std::map<std::string, Share> holders = {};
    std::string writer = {};
    TimePoint marked_until = TimePoint::min();
  };
  using Columns = std::vector<std::vector<std::string>>;
  using Notify = std::function<void(const std::string& channel, const std::string& payload)>;

  FakeLockTable(Executor& executor, Strategy strategy, LockKind kind, Notify notify)
      : executor_(executor), optimistic_(strategy == Strategy::optimistic), kind_(kind), notify_(std::move(notify)) {}

  Rows carry_out(const Command& command) {
    const std::string word = word_for(command);
    const Columns columns = columns_of(command);
    const auto lone = [&columns](std::size_t index) { return columns.at(index).front(); };
    if (word == "acquire") return acquire(columns);
    if (word == "renew") return renew(columns);
    if (word == "release") return release(columns);
    if (word == "change") return change(columns);
    if (word == "mark") return mark(columns);
    if (word == "break_lock") return break_lock(lone(0), lone(1));
    if (word == "forget") return forget(lone(0), number_in(lone(1)), static_cast<std::size_t>(number_in(lone(2))));
    Rows answer;
    if (word == "inspect" || word == "list") {
      for (const auto& [name, row] : rows) {
        if (word == "list" ? answer.size() < std::stoull(lone(0)) : name == lone(0)) look(name, row, answer);
      }
    }
    return answer;
  }
  // It waits until none of its rows is locked.
  [[nodiscard]] bool must_wait(const Command& command) const {
    if (word_for(command) != "change") return false;
    return std::ranges::any_of(Change::all_in(columns_of(command)), [&](const Change& each) {
      const auto row = rows.find(each.name);
      return row != rows.end() && row->second.locked && may_change(row->second, {.all = {&each}, .acquires = {}});
    });
  }
  // The elements of each parameter. First come the names, then the owners.
  [[nodiscard]] static Columns columns_of(const Command& command) {
    Columns columns;
    const std::string word = word_for(command);
    const bool one = command.statement != nullptr && command.statement->word.ends_with("_one");
    const bool many =
        !one && (word == "acquire" || word == "renew" || word == "release" || word == "mark" || word == "change");
    for (const Parameter& param : command.params) {
      const std::string text = param.value_or("");
      columns.push_back(many && text.starts_with('{') ? elements_of(text) : std::vector<std::string>{text});
    }
    return columns;
  }

  // "acquire", "renew", "release", "mark", ...; or the text.
  [[nodiscard]] static std::string word_for(const Command& command) {
    if (command.statement == nullptr) return command.text;
    std::string word = command.statement->word.substr(command.statement->word.find('.') + 1);
    if (word.ends_with("_one")) word.resize(word.size() - std::string_view("_one").size());
    return word;
  }
  // Of a query, in order: "release renew acquire".
  [[nodiscard]] static std::string words_for(const FakeQuery& query) {
    std::string words;
    for (const Command& command : query.commands) words += (words.empty() ? "" : " ") + word_for(command);
    return words;
  }

  // Owners whose leases have not expired.
  [[nodiscard]] std::vector<std::string> owners(const std::string& name) const {
    std::vector<std::string> owners;
    const auto found = rows.find(name);
    if (found == rows.end()) return owners;
    const Row& row = found->second;
    if (!row.owner.empty() && row.expires_at > now()) owners.push_back(row.owner);
    for (const auto& [owner, share] : row.holders) {
      if (share.expires_at > now()) owners.push_back(owner);
    }
    if (row.marked_until > now()) owners.push_back(row.writer);
    return owners;
  }

  std::map<std::string, Row> rows;

 private:
  using Cell = std::optional<std::string>;
  using milliseconds = std::chrono::milliseconds;

  [[nodiscard]] static std::int64_t number_in(const std::string& text) { return std::stoll(text); }
  [[nodiscard]] static Cell milliseconds_until(TimePoint at, TimePoint now) {
    return std::to_string(std::chrono::duration_cast<milliseconds>(at - now).count());
  }
  [[nodiscard]] std::int64_t microseconds_now() const {
    return std::chrono::duration_cast<std::chrono::microseconds>(now().time_since_epoch()).count();
  }

  // A request of the statement for what several may hold.
  struct Change {
    enum What : std::int64_t { gave_up = -1, release, renew, acquire };
    std::size_t number;
    std::string name;
    std::string owner;
    std::int64_t what;
    milliseconds lease;
    std::string holder;
    std::int64_t weight;
    std::int64_t permits;
    milliseconds mark;

    [[nodiscard]] bool wants_all() const noexcept { return weight == permits; }

    [[nodiscard]] static std::vector<Change> all_in(const Columns& columns) {
      std::vector<Change> changes;
      for (std::size_t i = 0; i < columns.at(0).size(); ++i) {
        const auto at = [&](std::size_t column) { return number_in(columns.at(column).at(i)); };
        changes.push_back({i + 1, columns.at(0).at(i), columns.at(1).at(i), at(2), milliseconds(at(3)),
                           columns.at(4).at(i), at(5), at(6), milliseconds(at(7))});
      }
      return changes;
    }
  };

  // All that is asked about a name.
  struct Group {
    std::vector<const Change*> all;
    std::vector<const Change*> acquires;

    [[nodiscard]] bool any(auto&& condition) const {
      return std::ranges::any_of(all, [&](const Change* each) { return condition(*each); });
    }
    [[nodiscard]] bool releases(const std::string& owner) const {
      return any([&](const Change& each) { return each.what <= 0 && each.owner == owner; });
    }
    [[nodiscard]] bool stands_by(const Row& row, const Change& each) const {
      return each.permits == row.permits && !releases(each.owner);
    }
  };

  [[nodiscard]] TimePoint now() const noexcept { return executor_.now(); }
  [[nodiscard]] std::int64_t next_token(std::int64_t last) const { return std::max(last + 1, microseconds_now()); }
  [[nodiscard]] bool is_held(const Row& row) const { return optimistic_ ? !row.owner.empty() : row.expires_at > now(); }
  void extend(Row& row, const std::string& lease) const {
    row.lease_ms = number_in(lease);
    ++row.version;
    row.expires_at = saturating_add(now(), milliseconds(row.lease_ms));
  }
  void free(Row& row, const std::string& name, const std::string& channel) const {
    row.owner.clear();
    row.holders.clear();
    ++row.version;
    row.expires_at = TimePoint::min();
    tell(row, name, channel);
  }
  void tell(const Row& row, const std::string& name, const std::string& channel) const {
    if (!channel.empty() && row.waiting_until > now()) notify_(channel, name);
  }
  [[nodiscard]] Rows acquire(const Columns& columns) {
    const std::vector<std::string>& names = columns.at(0);
    std::map<std::string, std::size_t> first;  // of those that want it, one in doubt before others
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto [found, fresh] = first.try_emplace(names[i], i);
      if (!fresh && columns.at(6).at(i) == "1" && columns.at(6).at(found->second) != "1") found->second = i;
    }
    std::map<std::string, bool> granted;
    for (const auto& [name, i] : first) {
      const std::string& owner = columns.at(1).at(i);
      const bool fresh = !rows.contains(name);
      Row& row = rows[name];
      const bool ours = row.owner == owner;
      const bool stood_still = optimistic_ && !row.owner.empty() && row.owner == columns.at(4).at(i) &&
                               row.version == number_in(columns.at(5).at(i));
      granted[name] = !row.locked && (fresh || !is_held(row) || ours || stood_still);
      if (!granted[name]) continue;
      if (!ours) row.token = next_token(row.token);
      row.owner = owner;
      row.holder = columns.at(2).at(i);
      extend(row, columns.at(3).at(i));
      tell(row, name, columns.at(7).front());
    }
    Rows answer;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::string& owner = columns.at(1).at(i);
      const Row& row = rows.at(names[i]);
      const bool ours = row.owner == owner;
      if (!(ours ? granted[names[i]] : is_held(row))) continue;
      const Cell token = ours ? Cell(std::to_string(row.token)) : Cell();
      answer.rows.push_back(
          optimistic_ ? Rows::Row{owner, token, row.owner, std::to_string(row.version), std::to_string(row.lease_ms)}
                      : Rows::Row{owner, token, Cell(), Cell(), milliseconds_until(row.expires_at, now())});
    }
    return answer;
  }
  [[nodiscard]] Rows renew(const Columns& columns) {
    Rows answer;
    for (std::size_t i = 0; i < columns.at(0).size(); ++i) {
      const auto found = rows.find(columns.at(0).at(i));
      const std::string& owner = columns.at(1).at(i);
      if (found == rows.end() || found->second.owner != owner || !is_held(found->second)) continue;
      if (!found->second.locked) extend(found->second, columns.at(2).at(i));
      answer.rows.push_back({owner, found->second.locked ? "f" : "t"});
    }
    return answer;
  }
  [[nodiscard]] Rows release(const Columns& columns) {
    Rows answer;
    for (std::size_t i = 0; i < columns.at(0).size(); ++i) {
      const auto found = rows.find(columns.at(0).at(i));
      const std::string& owner = columns.at(1).at(i);
      if (found == rows.end()) continue;
      const bool locked = found->second.locked;
      const bool unknown = locked && columns.at(2).at(i) == "1";
      if (found->second.owner != owner && !unknown) continue;
      answer.rows.push_back({owner, locked ? "f" : "t"});
      if (!locked) free(found->second, found->first, columns.at(3).front());
    }
    return answer;
  }
  [[nodiscard]] Rows mark(const Columns& columns) {
    const milliseconds mark_for(number_in(columns.at(1).front()));
    const TimePoint enough = saturating_add(now(), milliseconds(number_in(columns.at(2).front())));
    Rows answer;
    for (const std::string& name : columns.at(0)) {
      const auto found = rows.find(name);
      if (found == rows.end()) continue;
      Row& row = found->second;
      const bool counts = kind_ != LockKind::lock || is_held(row);
      if (counts && row.waiting_until < enough && !row.locked) row.waiting_until = saturating_add(now(), mark_for);
      answer.rows.push_back({name, !counts ? Cell("f") : row.waiting_until >= enough ? Cell("t") : Cell()});
    }
    return answer;
  }
  void look(const std::string& name, const Row& row, Rows& answer) const {
    const std::string token = std::to_string(row.token);
    if (kind_ == LockKind::lock || kind_ == LockKind::election) {
      const bool held = is_held(row);
      const Cell left = held && !optimistic_ ? milliseconds_until(row.expires_at, now()) : Cell();
      answer.rows.push_back({name, held ? "t" : "f", held ? row.holder : "", token, left, Cell()});
      return;
    }
    const std::string permits = std::to_string(row.permits);
    const std::size_t before = answer.size();
    for (const auto& [owner, share] : row.holders) {
      if (share.expires_at <= now()) continue;
      answer.rows.push_back({name, "t", share.holder, token, milliseconds_until(share.expires_at, now()), Cell(),
                             permits, std::to_string(share.weight), std::to_string(share.token)});
    }
    if (answer.size() == before) {
      answer.rows.push_back({name, "f", "", token, "0", Cell(), permits, Cell(), Cell()});
    }
  }
  [[nodiscard]] Rows break_lock(const std::string& name, const std::string& channel) {
    const auto found = rows.find(name);
    if (found == rows.end() || (!is_held(found->second) && used(found->second) == 0)) return {};
    if (found->second.locked) return {.rows = {{"f", Cell()}}};
    free(found->second, name, channel);
    return {.rows = {{"t", Cell()}}};
  }
  [[nodiscard]] Rows forget(const std::string& name, std::int64_t age, std::size_t at_most) {
    Rows forgotten;
    std::erase_if(rows, [&](const auto& item) {
      const auto& [of, row] = item;
      const bool idle = !is_held(row) && used(row) == 0 && row.waiting_until <= now() && row.marked_until <= now();
      const bool is_old = row.token <= microseconds_now() - age;
      if ((!name.empty() && of != name) || row.locked || !idle || !is_old || forgotten.size() >= at_most) return false;
      forgotten.rows.push_back({of});
      return true;
    });
    return forgotten;
  }
  [[nodiscard]] Rows change(const Columns& columns) {
    const std::vector<Change> changes = Change::all_in(columns);
    std::map<std::string, Group> groups;
    for (const Change& each : changes) {
      Group& group = groups[each.name];
      group.all.push_back(&each);
      if (each.what == Change::acquire) group.acquires.push_back(&each);
    }
    Rows answer;
    for (const auto& [name, group] : groups) {
      const auto found = rows.find(name);
      const bool fresh = found == rows.end() && !group.acquires.empty();
      const Row before = found == rows.end() ? Row() : found->second;
      const bool changed = fresh || (found != rows.end() && may_change(before, group));
      Row row = before;
      if (changed) {
        const bool freed = change(row, group);
        rows[name] = row;
        if (!fresh && freed) tell(row, name, columns.at(8).front());
      }
      for (const Change* each : group.all) {
        const auto& holders = each->what <= 0 ? before.holders : row.holders;
        const bool done = changed && holders.contains(each->owner);
        answer.rows.push_back({std::to_string(each->number), done ? "t" : "f", Cell(), Cell(), Cell()});
        Rows::Row& cells = answer.rows.back();
        if (done && row.holders.contains(each->owner)) cells[2] = std::to_string(row.holders.at(each->owner).token);
        if (each->what == Change::acquire && !done) say_why_not(row, *each, cells);
      }
    }
    return answer;
  }
  [[nodiscard]] std::int64_t used(const Row& row) const {
    std::int64_t used = 0;
    for (const auto& [owner, share] : row.holders) used += share.expires_at > now() ? share.weight : 0;
    return used;
  }
  // Otherwise the statement neither locks the row nor changes it.
  [[nodiscard]] bool may_change(const Row& row, const Group& group) const {
    const std::int64_t taken = used(row);
    const bool is_marked = row.marked_until > now();
    const auto wants_all = [](const Change& each) { return each.what == Change::acquire && each.wants_all(); };
    return group.any([&](const Change& each) {
      if (row.holders.contains(each.owner) || each.what == Change::gave_up) return true;
      if (each.what <= 0 && each.owner == row.writer) return true;
      if (each.what == Change::acquire && (!is_marked || group.any(wants_all)) &&
          (taken == 0 || (each.permits == row.permits && taken + each.weight <= row.permits))) {
        return true;
      }
      return each.mark.count() > 0 &&
             (!is_marked || (each.owner == row.writer && row.marked_until < saturating_add(now(), each.mark * 3 / 4)));
    });
  }
  // Whether others may enter now.
  [[nodiscard]] bool change(Row& row, const Group& group) const {
    const auto gone = std::erase_if(
        row.holders, [&](const auto& item) { return item.second.expires_at <= now() || group.releases(item.first); });
    for (const Change* each : group.all) {
      const auto share = row.holders.find(each->owner);
      if (each->what > 0 && share != row.holders.end()) share->second.expires_at = saturating_add(now(), each->lease);
    }
    const auto held_before = row.holders;
    const bool was_marked = row.marked_until > now();
    admit(row, group);
    const Change* marks = nullptr;
    for (const Change* each : group.all) {
      if (each->mark.count() <= 0 || row.holders.contains(each->owner) || !group.stands_by(row, *each)) continue;
      if (marks == nullptr || (each->owner == row.writer && marks->owner != row.writer)) marks = each;
    }
    const bool keeps = was_marked && !row.writer.empty() && !group.releases(row.writer) &&
                       (!row.holders.contains(row.writer) || held_before.contains(row.writer));
    if (!keeps || (marks != nullptr && marks->owner == row.writer)) {
      row.writer = marks == nullptr ? std::string() : marks->owner;
      row.marked_until = marks == nullptr ? TimePoint::min() : saturating_add(now(), marks->mark);
    }
    return gone > 0 || (was_marked && !keeps);
  }
  // One who wants all of it, or as many others as there is room for.
  void admit(Row& row, const Group& group) const {
    const std::int64_t taken = used(row);
    if (taken == 0 && !group.acquires.empty()) row.permits = group.acquires.front()->permits;
    const std::int64_t room = row.permits - taken;
    const bool is_marked = row.marked_until > now();
    const auto held_before = row.holders;
    const std::int64_t first_token = next_token(row.token);
    std::optional<bool> alone;
    std::int64_t place = 0;
    for (const Change* each : group.acquires) {
      const bool fits = each->weight <= room && (each->wants_all() || !is_marked);
      if (!fits || held_before.contains(each->owner) || !group.stands_by(row, *each)) continue;
      if (!alone) alone = each->wants_all();
      if (each->wants_all() != *alone || place >= (*alone ? 1 : room)) continue;
      row.token = first_token + place++;
      row.holders[each->owner] = {saturating_add(now(), each->lease), row.token, each->weight, each->holder};
    }
  }
  void say_why_not(const Row& row, const Change& each, Rows::Row& cells) const {
    TimePoint until = TimePoint::max();
    for (const auto& [owner, share] : row.holders) {
      if (share.expires_at > now()) until = std::min(until, share.expires_at);
    }
    if (each.permits != row.permits && until != TimePoint::max()) cells[3] = std::to_string(row.permits);
    if (!each.wants_all() && row.marked_until > now()) until = std::min(until, row.marked_until);
    cells[4] = until == TimePoint::max() ? "0" : milliseconds_until(until, now());
  }

  Executor& executor_;
  const bool optimistic_;
  const LockKind kind_;
  const Notify notify_;
};

}  // namespace dlock::postgres
