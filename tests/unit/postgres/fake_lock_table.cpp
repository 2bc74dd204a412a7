#include "fake_lock_table.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include <dlock/duration.hpp>

#include "array_elements.hpp"

namespace dlock::postgres {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

using Cell = std::optional<std::string>;

std::int64_t number(const std::string& text) {
  return std::stoll(text);
}

}  // namespace

std::string FakeLockTable::word_for(const Command& command) const {
  const std::string& sql = command.statement != nullptr ? command.statement->sql : command.text;
  const std::pair<const Statement*, const char*> words[] = {
      {&statements_.acquire, "acquire"},           {&statements_.acquire_many, "acquire_many"},
      {&statements_.renew_many, "renew_many"},     {&statements_.release, "release"},
      {&statements_.mark_many, "mark_many"},       {&statements_.leave_many, "leave_many"},
      {&statements_.release_many, "release_many"},
  };
  for (const auto& [statement, word] : words) {
    if (statement->sql == sql) return word;
  }
  return sql;
}

std::string FakeLockTable::words_for(const FakeQuery& query) const {
  std::string words;
  for (const Command& command : query.commands) words += (words.empty() ? "" : " ") + word_for(command);
  return words;
}

FakeReply FakeLockTable::carry_out(const FakeQuery& query) {
  FakeReply reply;
  for (const Command& command : query.commands) {
    const std::string word = word_for(command);
    std::vector<std::string> params;
    for (const Parameter& param : command.params) params.push_back(param.value_or(""));
    std::vector<std::vector<std::string>> columns;
    for (const std::string& param : params) {
      const bool array = word.ends_with("_many") && param.starts_with('{');
      columns.push_back(array ? elements_of(param) : std::vector<std::string>{param});
    }
    Rows answer;
    if (word.starts_with("acquire")) {
      answer = acquire(columns);
    } else if (word == "renew_many") {
      answer = renew(columns);
    } else if (word.starts_with("release")) {
      answer = release(columns, params.at(3));
    } else if (word == "mark_many") {
      answer =
          mark(columns.at(0), milliseconds(number(params.at(1))), milliseconds(number(params.at(2))), params.at(3));
    } else if (word == "leave_many") {
      for (const std::string& name : columns.at(0)) std::erase(rows[name].waiters, params.at(1));
    }
    reply.results.push_back(std::move(answer));
  }
  return reply;
}

bool FakeLockTable::is_held(const Row& row) const {
  return optimistic_ ? !row.owner.empty() : row.expires_at > engine_.now();
}

bool FakeLockTable::held(const std::string& name) const {
  const auto found = rows.find(name);
  return found != rows.end() && is_held(found->second);
}

Rows FakeLockTable::acquire(const std::vector<std::vector<std::string>>& columns) {
  Rows answer;
  for (std::size_t i = 0; i < columns.at(0).size(); ++i) {
    const std::string& owner = columns.at(1).at(i);
    const bool fresh = !rows.contains(columns.at(0).at(i));
    Row& row = rows[columns.at(0).at(i)];
    const bool ours = row.owner == owner;
    const bool stood_still = optimistic_ && !row.owner.empty() && row.owner == columns.at(4).at(i) &&
                             row.version == number(columns.at(5).at(i));
    if (!row.locked && (fresh || !is_held(row) || ours || stood_still)) {
      if (!ours) {
        const auto us = std::chrono::duration_cast<std::chrono::microseconds>(engine_.now().time_since_epoch());
        row.token = std::max<std::int64_t>(row.token + 1, us.count());
      }
      row.owner = owner;
      row.holder = columns.at(2).at(i);
      row.lease_ms = number(columns.at(3).at(i));
      ++row.version;
      row.expires_at = saturating_add(engine_.now(), milliseconds(row.lease_ms));
      if (election_ && !columns.back().front().empty()) tell(row, columns.at(0).at(i));
      answer.rows.push_back({owner, std::to_string(row.token), Cell(), Cell(), Cell()});
    } else if (is_held(row) && !ours) {
      const auto left = std::chrono::duration_cast<milliseconds>(row.expires_at - engine_.now());
      answer.rows.push_back(
          optimistic_ ? Rows::Row{owner, Cell(), row.owner, std::to_string(row.version), std::to_string(row.lease_ms)}
                      : Rows::Row{owner, Cell(), Cell(), Cell(), std::to_string(left.count())});
    }
  }
  return answer;
}

Rows FakeLockTable::renew(const std::vector<std::vector<std::string>>& columns) {
  Rows answer;
  for (std::size_t i = 0; i < columns.at(0).size(); ++i) {
    const auto found = rows.find(columns.at(0).at(i));
    const std::string& owner = columns.at(1).at(i);
    if (found == rows.end() || found->second.owner != owner || !is_held(found->second)) continue;
    Row& row = found->second;
    if (!row.locked) {
      row.lease_ms = number(columns.at(2).at(i));
      ++row.version;
      row.expires_at = saturating_add(engine_.now(), milliseconds(row.lease_ms));
    }
    answer.rows.push_back({owner, row.locked ? "f" : "t"});
  }
  return answer;
}

Rows FakeLockTable::release(const std::vector<std::vector<std::string>>& columns, const std::string& listened) {
  Rows answer;
  if (!listened.empty()) channel = listened;
  for (std::size_t i = 0; i < columns.at(0).size(); ++i) {
    const auto found = rows.find(columns.at(0).at(i));
    const std::string& owner = columns.at(1).at(i);
    if (found == rows.end() || found->second.owner != owner) continue;
    answer.rows.push_back({owner, found->second.locked ? "f" : "t", Cell()});
    if (!found->second.locked) free(found->first, !listened.empty());
  }
  return answer;
}

Rows FakeLockTable::mark(const std::vector<std::string>& names, nanoseconds mark_for, nanoseconds marked_for,
                         const std::string& client) {
  Rows answer;
  for (const std::string& name : names) {
    const auto found = rows.find(name);
    if (found == rows.end()) continue;
    Row& row = found->second;
    const TimePoint enough = saturating_add(engine_.now(), marked_for);
    const bool queues = election_ || std::find(row.waiters.begin(), row.waiters.end(), client) != row.waiters.end();
    const bool counts = election_ || is_held(row);
    if (counts && (row.waiting_until < enough || !queues) && !row.locked) {
      if (row.waiting_until <= engine_.now()) row.waiters.clear();
      row.waiting_until = saturating_add(engine_.now(), mark_for);
      if (!election_ && (!queues || row.waiters.empty())) row.waiters.push_back(client);
    }
    answer.rows.push_back({name, counts && row.waiting_until >= enough ? "t" : "f"});
  }
  return answer;
}

void FakeLockTable::give_to(const std::string& name, const std::string& owner, nanoseconds lease) {
  Row& row = rows[name];
  row.owner = owner;
  ++row.version;
  ++row.token;
  row.lease_ms = std::chrono::duration_cast<milliseconds>(lease).count();
  row.expires_at = saturating_add(engine_.now(), lease);
}

void FakeLockTable::free(const std::string& name, bool notifies) {
  Row& row = rows.at(name);
  row.owner.clear();
  ++row.version;
  row.expires_at = TimePoint::min();
  const std::string next = row.waiters.empty() ? std::string() : row.waiters.front();
  if (!row.waiters.empty()) row.waiters.pop_front();
  if (notifies) tell(row, next.empty() ? name : next + "\t" + name);
}

void FakeLockTable::tell(const Row& row, const std::string& payload) {
  if (row.waiting_until <= engine_.now()) return;
  ++notifications;
  if (notify) notify(channel, payload);
}

}  // namespace dlock::postgres
