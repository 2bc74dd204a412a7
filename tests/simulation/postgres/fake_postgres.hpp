// A PostgreSQL server in memory, behind the connections of clients (FakeServer): as much of it as dlock asks for, and
// what goes wrong. It tells statements by their words.
//
// Sessions carry out one query after the other. They have the tables of the row strategies, advisory locks, locks of
// rows with transactions around them, waits with an end, and notifications.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dlock/duration.hpp>

#include "backends/postgres/schema/layout.hpp"
#include "fake_session_locks.hpp"

namespace dlock::postgres {

class FakePostgres final : public FakeSessionLocks {
 public:
  // For its timers.
  explicit FakePostgres(Executor& executor, std::uint64_t seed = 1) : FakeSessionLocks(executor, seed) {}

  // The SQLSTATE with which it refuses a command; empty: none.
  std::function<std::string(int process, std::string_view word, const Command&)> refusal;
  // Changes the answer to a command that was carried out.
  std::function<void(int process, std::string_view word, Rows&)> falsify;

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

 private:
  // Whoever makes the schema has this row locked.
  static constexpr const char* creation_row = "\tcreation";
  static constexpr std::string_view ending_states = "57P0";  // such an error is the session's end
  // client_connection_check_interval, for which the backend asks.
  static constexpr milliseconds client_check{500};
  static constexpr milliseconds brief{250};

  [[nodiscard]] static bool concerns_several(const Command& command) {
    const std::string names = command.params.empty() ? "" : command.params.front().value_or("");
    return names.starts_with('{') && elements_of(names).size() > 1;
  }

  // Of one that nothing reaches the server does not know that its client has gone.
  void left(Session& session) override {
    const int connection = session.number;
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
  void take(Session& session, const FakeQuery& query, Fate what) override {
    session.queue.push_back({.query = query, .fate = what});
    for (Command& command : session.queue.back().query.commands) {
      if (command.statement == nullptr) continue;
      const std::string& word = command.statement->word;
      command.statement = &statements_.try_emplace(word, Statement{.sql = {}, .word = word}).first->second;
    }
    if (session.queue.size() == 1) pump(session);
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
          received.too_long ? Step{.server_code = received.end_of_wait} : execute(session, commands[received.next]);
      if (step.waits) {
        if (received.waits) return false;
        received.waits = true;
        received.end_of_wait = step.server_code;
        waiting_.push_back(session.number);
        wait(session, *step.waits);
        return false;
      }
      waited(session, received);
      if (!step.server_code.empty()) {
        fail(session, step.server_code, received.next);
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
  void fail(Session& session, const std::string& server_code, std::size_t command) {
    if (server_code.starts_with(ending_states)) {
      terminate(session, server_code);
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
    finish(session, FakeReply::refused(server_code, command));
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
  // As a task of its own: whoever frees something is in the middle of a query.
  void retry_soon() override {
    if (waiting_.empty() || std::exchange(retrying_, true)) return;
    executor_.post(lifetime_.guard([this] {
      retrying_ = false;
      for (const int number : std::vector<int>(waiting_.begin(), waiting_.end())) {
        const auto found = sessions_.find(number);
        if (found != sessions_.end() && !found->second.queue.empty()) pump(found->second);
      }
    }));
  }
  [[nodiscard]] Step execute(Session& session, const Command& command) {
    const std::string word = command.statement != nullptr ? command.statement->word : command.text;
    const std::string refused = refusal ? refusal(session.process, word, command) : "";
    const bool commits = word == "commit" || word == "COMMIT";
    if (!refused.empty() && !word.starts_with("fence")) return {.server_code = refused};
    if (commits || word == "rollback" || word == "ROLLBACK") {
      commits && !session.failed ? commit(session) : roll_back(session);
      return {};
    }
    if (session.failed) return {.server_code = "25P02"};
    if (command.statement == nullptr) return execute_text(session, command.text);
    Params params;
    for (const Parameter& param : command.params) params.push_back(param.value_or(""));
    if (!refused.empty()) {  // an error may come after the lock was granted, or before it was unlocked
      if (word.find(".unlock") == std::string::npos) (void)execute_advisory(session, word, params);
      return {.server_code = refused};
    }
    if (auto step = execute_plain(session, word, params)) return *std::move(step);
    const std::string_view what = std::string_view(word).substr(word.find('.') + 1);
    const bool of_locks_alone = what.starts_with("unlock") || what.starts_with("proof") || what == "break_lock" ||
                                what == "inspect_without_tables";
    const bool needs_tables = !word.starts_with("fence") || !of_locks_alone;
    if (!has_schema && needs_tables) return {.server_code = "42P01"};
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
      if (!row_is_free(session, creation_row)) return {.server_code = "55P03", .waits = std::chrono::seconds(5)};
      session.rows.insert(creation_row);
    }
    return {};
  }
  // Statements about no lock.
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
    if (rows == nullptr) return {.server_code = "42883"};
    if (rows->must_wait(command)) return {.server_code = "55P03", .waits = brief};
    const std::string what = FakeLockTable::word_for(command);
    if (what.starts_with("acquire") || what == "change") {
      const auto columns = FakeLockTable::columns_of(command);
      for (const std::string& owner : columns.at(1)) processes_[owner] = session.process;
    }
    current_ = &session;
    return {.rows = rows->carry_out(command)};
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

  std::map<std::string, FakeLockTable, std::less<>> tables_;
  std::map<std::string, int> processes_;         // of owners
  std::map<std::string, Statement> statements_;  // by their words; those of a client go with it
  Session* current_ = nullptr;                   // sends the notifications
  bool retrying_ = false;
};

}  // namespace dlock::postgres
