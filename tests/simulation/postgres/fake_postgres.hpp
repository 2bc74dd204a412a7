// A PostgreSQL server in memory, behind the connections of clients (FakeServer): as much of it as dlock asks for, and
// what goes wrong. It tells statements by their words.
//
// Sessions carry out one query after the other. They have the tables of the row strategies, advisory locks, locks of
// rows with transactions around them, waits with an end, and notifications. A session that holds something waits for
// nothing, and no client has more connections than it may: the fake reports a failure.
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
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dlock/duration.hpp>
#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "array_elements.hpp"
#include "backends/postgres/options.hpp"
#include "backends/postgres/schema/layout.hpp"
#include "fake_connection.hpp"
#include "fake_lock_table.hpp"
#include "tests/simulation/service.hpp"

namespace dlock::postgres {

class FakePostgres {
 public:
  using Fate = simulation::Fate;

  // For its timers.
  explicit FakePostgres(Executor& executor, std::uint64_t seed = 1) : executor_(executor), dice_(seed) {
    wire_.replies_to_heartbeats = true;
    wire_.records = false;
    wire_.opened = [this](int connection, int process, const Purpose& purpose) {
      sessions_.try_emplace(connection, connection, process, purpose, executor_);
    };
    wire_.gone = [this](int connection) { left(connection); };
    wire_.reply = [this](const FakeQuery& query) {
      receive(query);
      return FakeReply::held();
    };
  }

  [[nodiscard]] ConnectionFactory connections(int process) { return wire_.connections(process); }
  // How it meets those who connect.
  [[nodiscard]] FakeServer& wire() { return wire_; }

  // --- What goes wrong: see simulation::Service ---
  std::function<Fate(int process, std::string_view words)> fate;
  std::function<std::chrono::nanoseconds()> delay = [] { return std::chrono::milliseconds(100); };
  std::chrono::nanoseconds latency{};  // of what it sends
  // The SQLSTATE with which it refuses a command; empty: none.
  std::function<std::string(int process, std::string_view word, const Command&)> refusal;
  // Changes the answer to a command that was carried out.
  std::function<void(int process, std::string_view word, Rows&)> falsify;
  void cut(int process) {
    for (Session* const session : sessions_of(process)) break_off(*session, reset);
  }
  void set_reachable(int process, bool reachable) {
    reachable ? (void)wire_.unreachable.erase(process) : (void)wire_.unreachable.insert(process);
  }
  void expire(int process) {  // pg_terminate_backend()
    for (Session* const session : sessions_of(process)) {
      if (!session->silent) break_off(*session, terminated, ended_by_administrator);
    }
  }
  void release_held() {
    for (const auto& [connection, query, reply] : std::exchange(held_, {})) wire_.answer(connection, query, reply);
  }
  void bury(int process) { wire_.bury(process); }

  // --- What it has ---
  bool has_schema = true;
  bool may_create_schema = true;
  std::optional<std::string> version = "1";                   // in the table "meta"
  std::function<void(Rows& rights, Rows& tables)> catalogue;  // changes what is said of schema and tables
  std::optional<std::string> waits_for_snapshots;  // the transaction that waits for those of all others to end
  [[nodiscard]] FakeLockTable::Row& row(const std::string& table_name, const std::string& name) {
    return table(table_name)->rows.at(name);
  }
  // Processes: those that hold, and those that wait. Of a table, only holders.
  [[nodiscard]] std::vector<int> holders_of_rows(const std::string& table_name, const std::string& name) {
    std::vector<int> holders;
    for (const std::string& owner : table(table_name)->owners(name)) holders.push_back(processes_[owner]);
    return holders;
  }
  [[nodiscard]] std::vector<int> sessions_of_key(const std::string& key, bool waiters = true) const {
    return sessions_of(
        ".lock_slice", key, [&](const Session& session) { return session.keys.contains(key); }, waiters);
  }
  [[nodiscard]] std::vector<int> sessions_of_row(const std::string& name, bool waiters = true) const {
    return sessions_of(
        "row_lock.lock", name, [&](const Session& session) { return session.rows.contains(name); }, waiters);
  }

 private:
  using milliseconds = std::chrono::milliseconds;
  using nanoseconds = std::chrono::nanoseconds;

  static constexpr std::string_view shared_ending = "_shared";
  // Whoever makes the schema has this row locked.
  static constexpr const char* creation_row = "\tcreation";
  static constexpr const char* ended_by_administrator = "57P01";
  static constexpr std::string_view ending_states = "57P0";  // such an error is the session's end
  static constexpr const char* terminated = "fake: terminating connection due to administrator command";
  static constexpr const char* reset = "fake: connection reset by peer";
  // client_connection_check_interval, for which the backend asks.
  static constexpr milliseconds client_check{500};
  static constexpr milliseconds brief{250};
  static constexpr std::chrono::seconds unacknowledged{30};

  [[nodiscard]] static std::string word_of(const Command& command) {
    return command.statement != nullptr ? command.statement->word : command.text.substr(0, command.text.find(' '));
  }

  [[nodiscard]] static std::string words_in(const FakeQuery& query) {
    std::string words;
    for (const Command& command : query.commands) words += (words.empty() ? "" : " ") + word_of(command);
    return words;
  }

  [[nodiscard]] static bool concerns_several(const Command& command) {
    const std::string names = command.params.empty() ? "" : command.params.front().value_or("");
    return names.starts_with('{') && elements_of(names).size() > 1;
  }

  struct Locks {  // on an advisory key
    int exclusive = 0;
    int shared = 0;
  };
  // A query that was received.
  struct Received {
    FakeQuery query;
    Fate fate = Fate::answer;
    std::size_t next = 0;  // command
    Results results = {};
    bool waits = false;            // for others, or because it is late
    std::string end_of_wait = {};  // the SQLSTATE of that
    bool too_long = false;         // it waited
    bool was_late = false;
    std::vector<FakeLockTable::Row*> locked = {};  // while it is
  };
  struct Session {
    Session(int of_number, int of_process, Purpose of_purpose, Executor& executor)
        : number(of_number), process(of_process), purpose(std::move(of_purpose)), timer(executor) {}
    const int number;
    const int process;
    const Purpose purpose;
    std::deque<Received> queue = {};
    bool silent = false;       // nothing gets through any more
    bool broken = false;       // nor here, and the client learns of that
    bool terminated = false;   // it ends with that; else with what it has received
    bool client_left = false;  // that is
    bool unknown = false;      // an unlock was refused, so the client cannot know what it has
    bool open = false;         // a transaction
    bool failed = false;       // and that has to be rolled back
    bool makes_schema = false;
    std::set<std::string> rows = {};                      // locked by the transaction
    std::string holder = {};                              // of the last of them
    std::map<std::string, std::int64_t> new_tokens = {};  // not committed
    std::chrono::milliseconds patience{};                 // of its statements; 0: for ever
    std::vector<std::pair<std::string, std::string>> notifications = {};
    std::map<std::string, Locks> keys = {};
    std::set<std::string> channels = {};
    Timer timer;
  };
  // What became of a command: rows, an error, or it has to wait for so long, and then is an error.
  struct Step {
    Rows rows = {};
    std::string sqlstate = {};
    std::optional<std::chrono::nanoseconds> waits = std::nullopt;
  };
  using Params = std::vector<std::string>;
  struct Fence {
    std::int64_t token = 0;
    std::string key = {};  // of an advisory lock; with its holder, and the session which was granted it last
    std::string holder = {};
    int session = 0;
  };

  // Of one that nothing reaches the server does not know that its client has gone.
  void left(int connection) {
    const auto found = sessions_.find(connection);
    if (found == sessions_.end()) return;
    Session& session = found->second;
    if (session.terminated) return end(connection);
    const bool waits = std::find(waiting_.begin(), waiting_.end(), connection) != waiting_.end();
    const nanoseconds lease = session.purpose.session_lease;
    if (session.silent && lease.count() > 0 && !waits) return;
    session.client_left = true;
    if (session.queue.empty() || (session.silent && !waits)) return end(connection);
    if (!waits) return;
    session.timer.arm(saturating_add(executor_.now(), session.silent ? lease : client_check),
                      [this, connection] { end(connection); });
  }
  void receive(const FakeQuery& query) {
    const auto found = sessions_.find(query.connection);
    if (found == sessions_.end() || found->second.silent || found->second.broken) return;
    Session& session = found->second;
    const Fate what = fate ? fate(session.process, words_in(query)) : Fate::answer;
    if (what == Fate::lose_request) return break_off(session, reset);
    if (what == Fate::silence) return be_silent(session);
    session.queue.push_back({.query = query, .fate = what});
    for (Command& command : session.queue.back().query.commands) {
      if (command.statement == nullptr) continue;
      const std::string& word = command.statement->word;
      command.statement = &statements_.try_emplace(word, Statement{.sql = {}, .word = word}).first->second;
    }
    if (session.queue.size() == 1) pump(session);
  }
  // What is sent and not acknowledged breaks the client's end of the connection in time: see keepalive_parameters().
  void be_silent(Session& session) {
    session.silent = true;
    const nanoseconds lease = session.purpose.session_lease;
    const TimePoint at = saturating_add(executor_.now(), lease.count() > 0 ? lease : unacknowledged);
    (void)executor_.schedule(at, lifetime_.guard([this, number = session.number] {
      wire_.break_connections("fake: connection timed out", number);
    }));
  }
  void pump(Session& session) {
    const int number = session.number;
    for (auto found = sessions_.find(number); found != sessions_.end(); found = sessions_.find(number)) {
      Session& each = found->second;
      if (!each.queue.empty()) {
        if (!carry_out(each, each.queue.front())) return;
        continue;
      }
      if (each.client_left) return end(number);
      const nanoseconds lease = each.purpose.session_lease;
      if (lease.count() == 0) return;
      // Its client has not relied on it for a while.
      return each.timer.arm(saturating_add(executor_.now(), lease), [this, number] {
        if (!sessions_.at(number).silent) {
          wire_.break_connections("fake: terminating connection due to idle-session timeout", number, "57P05");
        }
        end(number);
      });
    }
  }
  // False: it waits.
  [[nodiscard]] bool carry_out(Session& session, Received& received) {
    // A statement is never carried out twice.
    const bool late = received.fate == Fate::late || received.fate == Fate::duplicate;
    if (late && is_late(session, received)) return false;
    if (received.fate == Fate::refuse && refuse(session, received)) return true;
    const auto& commands = received.query.commands;
    while (received.next < commands.size()) {
      Step step =
          received.too_long ? Step{.sqlstate = received.end_of_wait} : execute(session, commands[received.next]);
      if (step.waits) {
        if (received.waits) return false;
        received.waits = true;
        received.end_of_wait = step.sqlstate;
        waiting_.push_back(session.number);
        wait(session, *step.waits);
        return false;
      }
      waited(session, received);
      if (!step.sqlstate.empty()) {
        fail(session, step.sqlstate, received.next);
        return true;
      }
      if (falsify) falsify(session.process, word_of(commands[received.next]), step.rows);
      received.results.push_back(std::move(step.rows));
      ++received.next;
    }
    if (!session.open) commit(session);
    finish(session, {.results = received.results});
    return true;
  }
  // Its transaction has taken the locks of its rows meanwhile.
  [[nodiscard]] bool is_late(Session& session, Received& received) {
    if (received.was_late) {
      for (FakeLockTable::Row* const row : received.locked) row->locked = false;
      if (!std::exchange(received.locked, {}).empty()) retry_soon();
      return false;
    }
    for (const Command& command : received.query.commands) {
      FakeLockTable* const rows = table(word_of(command));
      if (rows == nullptr) continue;
      const auto columns = FakeLockTable::columns_of(command);
      for (const std::string& name : columns.at(0)) {
        const auto row = rows->rows.find(name);
        if (row == rows->rows.end() || std::exchange(row->second.locked, true)) continue;
        received.locked.push_back(&row->second);
      }
    }
    wait(session, delay());
    return true;
  }
  // An error may come after a session's lock was granted, which it keeps; with the commit, as where the queue of
  // notifications is full; or for one of several names.
  [[nodiscard]] bool refuse(Session& session, Received& received) {
    const auto& commands = received.query.commands;
    std::vector<std::pair<std::string, std::size_t>> states = {{"54000", commands.size()}};
    for (const char* const state : {"40001", "55P03", "53200", "26000", "25006", ended_by_administrator}) {
      states.emplace_back(state, 0);
    }
    for (std::size_t i = 0; i < commands.size(); ++i) {
      if (concerns_several(commands[i])) states.emplace_back("22P05", i);
    }
    const auto& [state, refused] = states.at(dice_() % states.size());
    if (dice_() % 2 == 0) {
      for (const Command& command : commands) {
        if (word_of(command).starts_with("fence.try")) (void)execute(session, command);
      }
    }
    fail(session, state, refused);
    return true;
  }
  void wait(Session& session, std::chrono::nanoseconds time) {
    session.timer.arm(saturating_add(executor_.now(), time), [this, number = session.number] { time_is_over(number); });
  }
  void waited(Session& session, Received& received) {
    session.timer.disarm();
    if (!std::exchange(received.waits, false)) return;
    waiting_.remove(session.number);
    retry_soon();
  }
  void fail(Session& session, const std::string& sqlstate, std::size_t command) {
    if (sqlstate.starts_with(ending_states)) {
      break_off(session, terminated, sqlstate);
      session.queue.clear();
      return;
    }
    const bool was_open = session.open;
    roll_back(session);
    session.open = session.failed = was_open;
    const auto& commands = session.queue.front().query.commands;
    session.unknown = session.unknown || std::any_of(commands.begin(), commands.end(), [](const Command& each) {
                        return word_of(each).find(".unlock") != std::string::npos;
                      });
    finish(session, FakeReply::refused(sqlstate, command));
  }
  void finish(Session& session, FakeReply reply) {
    const Received received = std::move(session.queue.front());
    session.queue.pop_front();
    if (session.silent || session.broken || session.client_left) return;
    if (received.fate == Fate::lose_answer) return break_off(session, reset);
    if (received.fate == Fate::hold) {
      held_.push_back({session.number, received.query.number, std::move(reply)});
      return;
    }
    deliver([this, number = session.number, query = received.query.number, reply = std::move(reply)] {
      wire_.answer(number, query, reply);
    });
    if (received.fate != Fate::expire) return;
    // When the answer has arrived.
    (void)executor_.schedule(saturating_add(executor_.now(), std::chrono::milliseconds(10)),
                             lifetime_.guard([this, process = session.process] { expire(process); }));
  }
  void deliver(Executor::Task task) {
    if (latency.count() == 0) return task();
    (void)executor_.schedule(saturating_add(executor_.now(), latency), lifetime_.guard(std::move(task)));
  }
  void time_is_over(int number) {
    Session& session = sessions_.at(number);
    Received& received = session.queue.front();
    (received.waits ? received.too_long : received.was_late) = true;
    pump(session);
  }
  void end(int number) {
    const auto found = sessions_.find(number);
    if (found == sessions_.end()) return;
    for (const Received& each : found->second.queue) {
      for (FakeLockTable::Row* const row : each.locked) row->locked = false;
    }
    sessions_.erase(found);
    waiting_.remove(number);
    retry_soon();
  }
  // The session ends when its client knows, or with its lease. Where a server ends it while the client is stopped, no
  // promise but that of tokens survives.
  void break_off(Session& session, const std::string& why, const std::string& sqlstate = {}) {
    session.silent = false;
    session.broken = true;
    session.terminated = !sqlstate.empty();
    wire_.break_connections(why, session.number, sqlstate);
  }
  // As a task of its own: whoever frees something is in the middle of a query.
  void retry_soon() {
    if (waiting_.empty() || std::exchange(retrying_, true)) return;
    executor_.post(lifetime_.guard([this] {
      retrying_ = false;
      for (const int number : std::vector<int>(waiting_.begin(), waiting_.end())) {
        const auto found = sessions_.find(number);
        if (found != sessions_.end() && !found->second.queue.empty()) pump(found->second);
      }
    }));
  }
  [[nodiscard]] std::vector<Session*> sessions_of(int process) {
    std::vector<Session*> sessions;
    for (auto& [number, session] : sessions_) {
      if (session.process == process) sessions.push_back(&session);
    }
    return sessions;
  }

  [[nodiscard]] Step execute(Session& session, const Command& command) {
    const std::string word = command.statement != nullptr ? command.statement->word : command.text;
    const std::string refused = refusal ? refusal(session.process, word, command) : "";
    const bool commits = word == "commit" || word == "COMMIT";
    if (!refused.empty() && !word.starts_with("fence")) return {.sqlstate = refused};
    if (commits || word == "rollback" || word == "ROLLBACK") {
      commits && !session.failed ? commit(session) : roll_back(session);
      return {};
    }
    if (session.failed) return {.sqlstate = "25P02"};
    if (command.statement == nullptr) return execute_text(session, command.text);
    Params params;
    for (const Parameter& param : command.params) params.push_back(param.value_or(""));
    if (!refused.empty()) {  // an error may come after the lock was granted, or before it was unlocked
      if (word.find(".unlock") == std::string::npos) (void)execute_advisory(session, word, params);
      return {.sqlstate = refused};
    }
    if (auto step = execute_plain(session, word, params)) return *std::move(step);
    const std::string_view what = std::string_view(word).substr(word.find('.') + 1);
    const bool of_locks_alone = what.starts_with("unlock") || what.starts_with("proof") || what == "break_lock" ||
                                what == "inspect_without_tables";
    const bool needs_tables = !word.starts_with("fence") || !of_locks_alone;
    if (!has_schema && needs_tables) return {.sqlstate = "42P01"};
    if (word.starts_with("fence")) return execute_advisory(session, word, params);
    if (word.starts_with("row_lock")) return execute_row_lock(session, what, params);
    return execute_on_rows(session, command);
  }
  [[nodiscard]] Step execute_text(Session& session, const std::string& text) {
    if (text.starts_with("BEGIN")) {
      EXPECT_FALSE(session.open) << "a transaction inside a transaction";
      session.open = true;
    } else if (text.starts_with("LISTEN ")) {
      const std::size_t from = text.find('"') + 1;
      session.channels.insert(text.substr(from, text.rfind('"') - from));
    } else if (text.starts_with("CREATE TABLE")) {
      session.makes_schema = true;
    } else if (text.starts_with("INSERT INTO")) {
      if (!version) version = std::to_string(schema_version);
    } else if (text.find("pg_advisory_xact_lock") != std::string::npos) {
      if (!row_is_free(session, creation_row)) return {.sqlstate = "55P03", .waits = std::chrono::seconds(5)};
      session.rows.insert(creation_row);
    }
    return {};
  }
  // What is about no lock.
  [[nodiscard]] std::optional<Step> execute_plain(Session& session, std::string_view word, const Params& params) {
    const auto of = [](Rows::Row row) { return Step{.rows = {.rows = {std::move(row)}}}; };
    if (word == "begin") return execute_text(session, "BEGIN");
    if (word == "heartbeat") return of({"read committed"});
    if (word == "waits_for_snapshots") return of({"1", waits_for_snapshots});
    if (word == "version") return version ? of({version}) : Step();
    if (word == "tables" || word == "rights") return Step{.rows = look_at_schema(session, word == "rights")};
    if (word != "set_patience") return std::nullopt;
    session.patience = milliseconds(std::stoi(params.at(0)));
    return of({params.at(0) + "ms"});
  }
  [[nodiscard]] Step execute_on_rows(Session& session, const Command& command) {
    FakeLockTable* const rows = table(word_of(command));
    EXPECT_NE(rows, nullptr) << word_of(command);
    if (rows == nullptr) return {.sqlstate = "42883"};
    if (rows->must_wait(command)) return {.sqlstate = "55P03", .waits = brief};
    const std::string what = FakeLockTable::word_for(command);
    if (what.starts_with("acquire") || what == "change") {
      const auto columns = FakeLockTable::columns_of(command);
      for (const std::string& owner : columns.at(1)) processes_[owner] = session.process;
    }
    current_ = &session;
    return {.rows = rows->carry_out(command)};
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
      break_off(session, terminated, ended_by_administrator);
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
  [[nodiscard]] Rows look_at_schema(const Session& session, bool rights) const {
    const bool there = has_schema || session.makes_schema;
    const char* const may = there ? "t" : "f";
    Rows about_schema{.rows = {{may, may, may, may_create_schema ? "t" : "f"}}};
    Rows tables;
    for (const TableDefinition& each : layout()) {
      if (!there) break;
      tables.rows.push_back({std::string(each.name), std::string(each.columns), "p", "t", "t", "t", "me", "t", ""});
    }
    if (catalogue) catalogue(about_schema, tables);
    return rights ? about_schema : tables;
  }
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
        return waits ? Step{.sqlstate = "55P03", .waits = milliseconds(std::stoi(params.at(3)))} : Step{};
      }
      take_key(session, key, shared);
    }
    const std::int64_t many = shared && !waits ? std::stoi(params.at(3)) : 1;
    const std::string token =
        next_fence(session, word.substr(0, word.find('.')), params.at(1), key, params.at(2), many);
    return {.rows = {.rows = {{token, std::to_string(1000 + session.number)}}}};
  }
  [[nodiscard]] std::string next_fence(const Session& session, std::string_view table, const std::string& row,
                                       const std::string& key, const std::string& holder, std::int64_t many = 1) {
    Fence& fence = fences_[std::string(table) + "/" + row];
    fence = {next_token(fence.token) + many - 1, key, holder, session.number};
    return std::to_string(fence.token);
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
      if (word == "try_lock") return {.sqlstate = "55P03"};
      return {.sqlstate = "57014",
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
  [[nodiscard]] FakeLockTable* table(std::string_view word) {
    const std::string_view name = word.substr(0, word.find('.'));
    if (!name.starts_with("lease") && !name.starts_with("optimistic")) return nullptr;
    const auto found = tables_.find(name);
    if (found != tables_.end()) return &found->second;
    const Strategy strategy = name.starts_with("lease") ? Strategy::table : Strategy::optimistic;
    const LockKind kind = name.ends_with("_elect") ? LockKind::election
                          : name.ends_with("_rw")  ? LockKind::read_write
                          : name.ends_with("_sem") ? LockKind::semaphore
                                                   : LockKind::lock;
    const auto notify = [this](const std::string& channel, const std::string& payload) {
      current_->notifications.emplace_back(channel, payload);
    };
    return &tables_.try_emplace(std::string(name), executor_, strategy, kind, notify).first->second;
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
  [[nodiscard]] bool row_is_free(const Session& session, const std::string& name) const {
    const auto has_it = [&](const auto& item) { return &item.second != &session && item.second.rows.contains(name); };
    return std::ranges::none_of(sessions_, has_it) && waiters_for("row_lock.lock", name, &session).empty();
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
  // A real clock does not stand still from one statement to the next.
  [[nodiscard]] std::int64_t next_token(std::int64_t last) {
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(executor_.now().time_since_epoch());
    clock_ = std::max<std::int64_t>(clock_ + 1, us.count());
    return std::max(last + 1, clock_);
  }
  void commit(Session& session) {
    for (const auto& [channel, payload] : session.notifications) {
      for (const auto& [number, each] : sessions_) {
        if (!each.channels.contains(channel) || each.silent) continue;
        deliver(
            [this, channel = channel, payload = payload, number = number] { wire_.notify(channel, payload, number); });
      }
    }
    for (const auto& [name, token] : session.new_tokens) fences_["row_lock/" + name].token = token;
    has_schema = has_schema || session.makes_schema;
    roll_back(session);
  }
  void roll_back(Session& session) {
    session.open = session.failed = session.makes_schema = false;
    session.patience = {};
    session.new_tokens.clear();
    session.notifications.clear();
    if (!std::exchange(session.rows, {}).empty()) retry_soon();
  }
  void must_hold_nothing(const Session& session, std::string_view word) const {
    EXPECT_TRUE(session.keys.empty() || session.unknown) << word << " on a session that has advisory locks";
    EXPECT_TRUE(session.rows.empty()) << word << " in a transaction that has locked a row";
  }
  // Sessions that wait with such a command for that, in order, as far as they came before a session.
  struct Waiter {
    const Session* session;
    bool shared;
  };
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

  Executor& executor_;
  std::mt19937_64 dice_;
  FakeServer wire_;
  std::map<std::string, FakeLockTable, std::less<>> tables_;
  std::map<std::string, int> processes_;         // of owners
  std::map<std::string, Statement> statements_;  // by their words; those of a client go with it
  std::map<std::string, Fence> fences_;          // by table and row: "fence/a", "row_lock/a"
  std::int64_t clock_ = 0;                       // in microseconds, when a token was made last
  std::map<int, Session> sessions_;              // by their connections
  std::list<int> waiting_;                       // in order
  struct Held {
    int connection;
    std::uint64_t query;
    FakeReply reply;
  };
  std::vector<Held> held_;
  Session* current_ = nullptr;  // sends the notifications
  bool retrying_ = false;
  Lifetime lifetime_;
};

}  // namespace dlock::postgres
