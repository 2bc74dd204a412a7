// Locks that live in sessions of a fake PostgreSQL server: advisory keys, rows that transactions lock, and the waits
// for them. A session that holds something waits for nothing: the fake reports a failure.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dlock/spi/executor.hpp>

#include "fake_connection.hpp"
#include "fake_lock_table.hpp"
#include "tests/simulation/sql/fake_database.hpp"

namespace dlock::postgres {

struct KeyLocks {  // on an advisory key
  int exclusive = 0;
  int shared = 0;
};
// A query that was received.
struct Received {
  FakeQuery query;
  simulation::Fate fate = simulation::Fate::answer;
  std::size_t next = 0;  // command
  Results results = {};
  bool waits = false;            // for others, or because it is late
  std::string end_of_wait = {};  // the SQLSTATE of that
  bool too_long = false;         // it waited
  bool was_late = false;
  std::vector<FakeLockTable::Row*> locked = {};  // while it is
};
struct PostgresSession : FakeSession<Received> {
  using FakeSession::FakeSession;
  bool unknown = false;  // an unlock was refused, so the client cannot know what it has
  bool failed = false;   // its transaction, which has to be rolled back
  bool makes_schema = false;
  std::set<std::string> rows = {};                      // locked by the transaction
  std::string holder = {};                              // of the last of them
  std::map<std::string, std::int64_t> new_tokens = {};  // not committed
  std::chrono::milliseconds patience{};                 // of its statements; 0: for ever
  std::vector<std::pair<std::string, std::string>> notifications = {};
  std::map<std::string, KeyLocks> keys = {};
  std::set<std::string> channels = {};
};
class FakeSessionLocks : public FakeDatabase<PostgresSession> {
 public:
  // Processes: those that hold, and those that wait.
  [[nodiscard]] std::vector<int> sessions_of_key(const std::string& key, bool waiters = true) const {
    return sessions_of(
        ".lock_slice", key, [&](const Session& session) { return session.keys.contains(key); }, waiters);
  }
  [[nodiscard]] std::vector<int> sessions_of_row(const std::string& name, bool waiters = true) const {
    return sessions_of(
        "row_lock.lock", name, [&](const Session& session) { return session.rows.contains(name); }, waiters);
  }

 protected:
  using Session = PostgresSession;
  using milliseconds = std::chrono::milliseconds;
  using nanoseconds = std::chrono::nanoseconds;

  static constexpr std::string_view shared_ending = "_shared";
  static constexpr const char* ended_by_administrator = "57P01";

  FakeSessionLocks(Executor& executor, std::uint64_t seed)
      : FakeDatabase(executor, seed, fake_traits(), "fake: terminating connection due to administrator command",
                     ended_by_administrator) {}

  // The outcome of a command: rows, an error, or it has to wait for so long, and then is an error.
  struct Step {
    Rows rows = {};
    std::string server_code = {};
    std::optional<std::chrono::nanoseconds> waits = std::nullopt;
  };
  using Params = std::vector<std::string>;
  struct Fence {
    std::int64_t token = 0;
    std::string key = {};  // of an advisory lock; with its holder, and the session which was granted it last
    std::string holder = {};
    int session = 0;
  };
  // Sessions that wait with such a command for that, in order, as far as they came before a session.
  struct Waiter {
    const Session* session;
    bool shared;
  };

  ~FakeSessionLocks() = default;
  // Some of what sessions wait for may be free now.
  virtual void retry_soon() = 0;

  [[nodiscard]] Step execute_advisory(Session& session, std::string_view word, const Params& params) {
    const bool shared = word.ends_with(shared_ending);
    if (shared) word.remove_suffix(shared_ending.size());
    const std::string_view what = word.substr(word.find('.') + 1);
    const std::string_view fence = word.substr(0, word.find('.'));
    const std::string pid = std::to_string(1000 + session.number);
    if (auto step = answer_question(fence, what, params)) return *std::move(step);
    if (what == "proof") {
      if (key_is_free(session, params.at(0), false)) return {.rows = {.rows = {{pid, "t", "t"}}}};
      return {.rows = {.rows = {{pid, std::nullopt, "f"}}}};
    }
    Rows answer;
    if (what.starts_with("unlock")) {
      const bool is_one = what == "unlock";
      for (const std::string& key : is_one ? std::vector{params.at(0)} : elements_of(params.at(0))) {
        answer.rows.push_back({free_key(session, key, shared) ? "t" : "f"});
      }
      return {.rows = answer};
    }
    if (what != "try_many") return lock_key(session, word, shared, params);
    const auto keys = elements_of(params.at(0));
    const auto rows = elements_of(params.at(1));
    const auto holders = elements_of(params.at(2));
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (!key_is_free(session, keys[i], false)) continue;
      take_key(session, keys[i], false);
      answer.rows.push_back({rows.at(i), next_fence(session, fence, rows.at(i), keys[i], holders.at(i)), pid});
    }
    return {.rows = answer};
  }
  [[nodiscard]] Step execute_row_lock(Session& session, std::string_view word, const Params& params) {
    if (auto step = answer_question("row_lock", word, params)) return *std::move(step);
    const std::string& name = params.at(0);
    Fence* const fence = word == "ensure" ? &fences_["row_lock/" + name] : fence_of("row_lock", name);
    if (word == "ensure" || fence == nullptr) return {};
    EXPECT_TRUE(word == "try_lock" || word == "lock") << word;
    EXPECT_TRUE(session.open) << "the lock would end with the statement";
    if (word == "lock") must_hold_nothing(session, word);
    if (!row_is_free(session, name)) {
      if (word == "try_lock") return {.server_code = "55P03"};
      return {.server_code = "57014",
              .waits =
                  session.patience.count() > 0 ? nanoseconds(session.patience) : nanoseconds(std::chrono::hours(1000))};
    }
    session.rows.insert(name);
    session.holder = params.at(1);
    session.patience = {};
    const std::int64_t token = next_token(fence->token);
    session.new_tokens[name] = token;
    return {.rows = {.rows = {{std::to_string(token), "dlock#", "0"}}}};
  }
  [[nodiscard]] bool row_is_free(const Session& session, const std::string& name) const {
    const auto has_it = [&](const auto& item) { return &item.second != &session && item.second.rows.contains(name); };
    return std::ranges::none_of(sessions_, has_it) && waiters_for("row_lock.lock", name, &session).empty();
  }
  // A real clock does not stand still from one statement to the next.
  [[nodiscard]] std::int64_t next_token(std::int64_t last) {
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(executor_.now().time_since_epoch());
    clock_ = std::max<std::int64_t>(clock_ + 1, us.count());
    return std::max(last + 1, clock_);
  }

  std::map<std::string, Fence> fences_;  // by table and row: "fence/a", "row_lock/a"
  std::int64_t clock_ = 0;               // in microseconds, when a token was made last
  std::list<int> waiting_;               // in order

 private:
  void must_hold_nothing(const Session& session, std::string_view word) const {
    EXPECT_TRUE(session.keys.empty() || session.unknown) << word << " on a session that has advisory locks";
    EXPECT_TRUE(session.rows.empty()) << word << " in a transaction that has locked a row";
  }
  [[nodiscard]] std::vector<Waiter> waiters_for(std::string_view word, const std::string& what,
                                                const Session* before = nullptr) const {
    std::vector<Waiter> waiters;
    for (const int number : waiting_) {
      if (before != nullptr && number == before->number) break;
      const Session& session = sessions_.at(number);
      const Received& received = session.queue.front();
      const Command& command = received.query.commands.at(received.next);
      if (command.statement == nullptr || command.statement->word.find(word) == std::string::npos) continue;
      const bool shared = command.statement->word.ends_with(shared_ending);
      if (command.params.at(0) == what) waiters.push_back({&session, shared});
    }
    return waiters;
  }
  [[nodiscard]] std::vector<int> sessions_of(std::string_view word, const std::string& what,
                                             const std::function<bool(const Session&)>& holds, bool waiters) const {
    std::vector<int> processes;
    for (const auto& [number, session] : sessions_) {
      if (holds(session)) processes.push_back(session.process);
    }
    if (!waiters) return processes;
    for (const Waiter& each : waiters_for(word, what)) {
      // Where the client has left, it is about to leave the queue.
      if (!each.session->client_left) processes.push_back(each.session->process);
    }
    return processes;
  }
  [[nodiscard]] bool key_is_free(const Session& session, const std::string& key, bool shared) const {
    for (const auto& [number, other] : sessions_) {
      const auto found = other.keys.find(key);
      if (found == other.keys.end() || &other == &session) continue;
      if (found->second.exclusive > 0 || !shared) return false;
    }
    return std::ranges::all_of(waiters_for(".lock_slice", key, &session),
                               [shared](const Waiter& ahead) { return shared && ahead.shared; });
  }
  void take_key(Session& session, const std::string& key, bool shared) {
    EXPECT_TRUE(session.unknown || !session.keys.contains(key)) << "the session has the lock already";
    ++(shared ? session.keys[key].shared : session.keys[key].exclusive);
  }
  [[nodiscard]] bool free_key(Session& session, const std::string& key, bool shared) {
    const auto found = session.keys.find(key);
    if (found == session.keys.end()) return false;
    int& count = shared ? found->second.shared : found->second.exclusive;
    if (count == 0) return false;
    --count;
    if (found->second.exclusive + found->second.shared == 0) session.keys.erase(found);
    retry_soon();
    return true;
  }
  [[nodiscard]] std::string next_fence(const Session& session, std::string_view table, const std::string& row,
                                       const std::string& key, const std::string& holder, std::int64_t many = 1) {
    Fence& fence = fences_[std::string(table) + "/" + row];
    fence = {next_token(fence.token) + many - 1, key, holder, session.number};
    return std::to_string(fence.token);
  }
  [[nodiscard]] Step lock_key(Session& session, std::string_view word, bool shared, const Params& params) {
    const std::string_view what = word.substr(word.find('.') + 1);
    const std::string& key = params.at(0);
    const bool waits = what == "lock_slice";
    if (what == "join") {
      EXPECT_TRUE(session.keys.contains(key)) << "the session does not share the lock";
      if (!std::ranges::all_of(waiters_for(".lock_slice", key), &Waiter::shared)) return {};
    } else {
      EXPECT_TRUE(waits || what == "try_lock") << word;
      if (waits) must_hold_nothing(session, word);
      if (!key_is_free(session, key, shared)) {
        return waits ? Step{.server_code = "55P03", .waits = milliseconds(std::stoi(params.at(3)))} : Step{};
      }
      take_key(session, key, shared);
    }
    const std::int64_t many = shared && !waits ? std::stoi(params.at(3)) : 1;
    const std::string token =
        next_fence(session, word.substr(0, word.find('.')), params.at(1), key, params.at(2), many);
    return {.rows = {.rows = {{token, std::to_string(1000 + session.number)}}}};
  }
  // Of locks that belong to sessions.
  [[nodiscard]] Fence* fence_of(std::string_view table, const std::string& row) {
    const auto found = fences_.find(std::string(table) + "/" + row);
    return found == fences_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] std::optional<Step> answer_question(std::string_view table, std::string_view what,
                                                    const Params& params) {
    const bool rows = table == "row_lock";
    Rows answer;
    if (what == "inspect" || what == "inspect_without_tables") {
      const std::string& name = params.at(rows ? 0 : 1);
      if (!rows || fence_of(table, name) != nullptr) look(table, name, answer);
    } else if (what == "list") {
      for (const auto& [row, fence] : fences_) {
        if (row.starts_with(std::string(table) + "/")) look(table, row.substr(table.size() + 1), answer);
      }
    } else if (what == "break_lock") {
      answer = break_lock(table, params.at(0), params.at(1));
    } else if (what == "forget") {
      answer = forget(table, params.at(0), std::stoll(params.at(1)), std::stoull(params.at(2)));
    } else {
      return std::nullopt;
    }
    return Step{.rows = answer};
  }
  // A row for each session that holds it, or one.
  void look(std::string_view table, const std::string& name, Rows& answer) {
    const bool rows = table == "row_lock";
    const Fence* const found = fence_of(table, name);
    const Fence fence = found == nullptr ? Fence() : *found;
    const std::string waiters =
        std::to_string(rows ? waiters_for("row_lock.lock", name).size()
                            : waiters_for(std::string(table) + ".lock_slice", fence.key).size());
    const std::string shown = name.substr(0, name.find('\t'));
    const std::size_t before = answer.size();
    for (const auto& [number, session] : sessions_) {
      const auto key = session.keys.find(fence.key);
      if (rows ? !session.rows.contains(name) : key == session.keys.end()) continue;
      const bool known = rows || fence.session == number;
      const std::string token = std::to_string(rows ? session.new_tokens.at(name) : known ? fence.token : 0);
      const std::string holder = rows ? session.holder : known ? fence.holder : "somebody";
      answer.rows.push_back({shown, "t", holder, token, std::nullopt, waiters});
      if (table != "fence_rw") continue;
      const char* const weight = key->second.exclusive > 0 ? "2" : "1";
      answer.rows.back().insert(answer.rows.back().end(), {"2", weight, token});
    }
    if (answer.size() != before) return;
    answer.rows.push_back({shown, "f", "", std::to_string(fence.token), std::nullopt, waiters});
  }
  [[nodiscard]] Rows break_lock(std::string_view table, const std::string& what, const std::string& sessions) {
    const auto chosen = elements_of(sessions);
    Rows ended;
    for (auto& [number, session] : sessions_) {
      if (!(table == "row_lock" ? session.rows.contains(what) : session.keys.contains(what))) continue;
      const std::string pid = std::to_string(1000 + number);
      if (!chosen.empty() && std::ranges::count(chosen, pid) == 0) continue;
      ended.rows.push_back({"t", std::nullopt, pid});
      terminate(session);
    }
    return ended;
  }
  [[nodiscard]] Rows forget(std::string_view table, const std::string& name, std::int64_t age, std::size_t at_most) {
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(executor_.now().time_since_epoch()).count();
    const std::string below = std::string(table) + "/";
    Rows forgotten;
    std::erase_if(fences_, [&](const auto& item) {
      const auto& [path, fence] = item;
      if (!path.starts_with(below) || forgotten.size() >= at_most) return false;
      const std::string row = path.substr(below.size());
      const bool is_held = std::ranges::any_of(sessions_, [&, &key = fence.key](const auto& each) {
        return each.second.rows.contains(row) || each.second.keys.contains(key);
      });
      const bool unused = fence.token == 0;  // such a row is forgotten only if it is asked for
      const bool is_old = fence.token <= us - age && !(unused && name.empty());
      if ((!name.empty() && row != name) || is_held || !is_old) return false;
      forgotten.rows.push_back({row.substr(0, row.find('\t'))});
      return true;
    });
    return forgotten;
  }
};

}  // namespace dlock::postgres
