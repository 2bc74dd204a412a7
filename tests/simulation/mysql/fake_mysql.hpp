// A MariaDB server in memory, behind the connections of clients (sql::FakeServer): as much of it as dlock asks for, and
// what goes wrong. Sessions carry out one query after the other; a query of several writing commands is a transaction.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dlock/duration.hpp>

#include "backends/mysql/client/query_text.hpp"
#include "backends/mysql/errors.hpp"
#include "backends/mysql/sql/layout.hpp"
#include "fake_tables.hpp"
#include "tests/simulation/sql/fake_database.hpp"

namespace dlock::mysql {

// A query that was received.
struct Received {
  sql::FakeQuery query;
  simulation::Fate fate = simulation::Fate::answer;
  bool wrapped = false;
  std::size_t next = 0;  // command
  sql::Results results = {};
  std::string error = {};  // refuses it
  std::size_t refused_at = 0;
  bool was_late = false;
  bool late_at_end = false;  // just before it is committed
};

using FakeDatabase = sql::FakeDatabase<sql::FakeSession<Received, FakeTables::Session>>;

class FakeMysql final : public FakeTables, public FakeDatabase {
 public:
  // For its timers.
  explicit FakeMysql(Executor& executor, std::uint64_t seed = 1)
      : FakeTables(executor),
        FakeDatabase(executor, seed,
                     {.info = {.version = 101119, .ends_silent_sessions = true, .endpoint = "fake:3306/locks"},
                      .heartbeat = "DO 0",
                      .code_word = "error ",
                      .full = "Too many connections (error 1040)",
                      .pipelines = false,
                      .waits_times = 2},  // for plain locks, and for elections
                     killed, "1927") {
    make_schema();
  }

  // The number of the error with which it refuses a command; empty: none.
  std::function<std::string(int process, std::string_view word)> refusal;
  bool kill(int session) override {
    const auto found = sessions_.find(session);
    if (found == sessions_.end()) return false;
    terminate(found->second);
    return true;
  }
  // Answers to waits that have not ended are not held either.
  void release_held() {
    for (auto& [number, session] : sessions_) {
      for (Received& each : session.queue) each.fate = each.fate == Fate::hold ? Fate::answer : each.fate;
    }
    FakeDatabase::release_held();
  }

  // --- What it has ---
  void make_schema() {
    for (const TableDefinition& each : layout()) tables_.insert(std::string(each.name));
    version = std::to_string(schema_version);
  }
  void remove_schema() {
    tables_.clear();
    version.reset();
  }
  bool may_create = true;
  std::optional<std::string> version;           // in the table "meta"
  std::function<void(Rows& tables)> catalogue;  // changes what is said of the tables
  // Processes of the owners of a row whose leases have not expired.
  [[nodiscard]] std::vector<int> holders_of_row(const std::string& table, const std::string& name) {
    std::vector<int> holders;
    for (const std::string& owner : owners(table, name)) holders.push_back(processes_[owner]);
    return holders;
  }
  // Processes that have a row's or a user lock, and those that wait for it.
  [[nodiscard]] std::vector<int> sessions_of(const Lock& lock, bool waiters = true) const {
    std::vector<int> processes;
    if (lock.session > 0) processes.push_back(sessions_.at(lock.session).process);
    for (const int number : lock.waiters) {
      const Session& session = sessions_.at(number);
      if (waiters && !session.client_left) processes.push_back(session.process);
    }
    return processes;
  }

 private:
  static constexpr const char* killed = "fake: Connection was killed (error 1927)";
  static constexpr const char* interrupted = "1317";
  static constexpr const char* server_shutdown = "1053";
  static constexpr const char* no_such_table = "1146";
  static constexpr const char* error_during_commit = "1180";
  // The server looks after the client of a session that waits for a user lock; never while it waits for a row.
  static constexpr std::chrono::milliseconds client_check{800};
  static constexpr std::chrono::seconds unused{60};

  using Session = sql::FakeSession<Received, FakeTables::Session>;
  using FakeDatabase::executor_;

  // --- From clients ---

  // Of one that nothing reaches the server does not know that its client has gone.
  void left(Session& session) override {
    const int connection = session.number;
    if (session.terminated) return end(connection);
    if (session.silent && session.purpose.session_lease.count() > 0) return;
    session.client_left = true;
    if (session.queue.empty() || session.silent) return end(connection);
    if (session.waits_for == nullptr || session.waits_for->of_row) return;
    session.timer.arm(saturating_add(executor_.now(), client_check), [this, connection] { end(connection); });
  }
  void take(Session& session, const sql::FakeQuery& query, Fate what) override {
    session.timer.disarm();
    Received& received = session.queue.emplace_back(Received{.query = query, .fate = what});
    const auto text = text_of({.commands = query.commands});
    EXPECT_TRUE(text.ok()) << words_in(query);
    received.wrapped = text.ok() && text.value().wrapped;
    received.late_at_end = dice_() % 2 == 0;
    if (what == Fate::refuse) choose_error(session, received);
    // The client's own go with it.
    for (Command& command : received.query.commands) {
      if (command.statement == nullptr) continue;
      command.statement = &statements_.try_emplace(command.statement->sql, *command.statement).first->second;
    }
    if (session.queue.size() == 1) pump(session.number);
  }
  // An error may come behind commands that were carried out, and whose bells stay; or with the commit.
  void choose_error(const Session& session, Received& received) {
    const auto& commands = received.query.commands;
    received.refused_at = dice_() % (commands.size() + (received.wrapped ? 1 : 0));
    const bool commits =
        received.refused_at == commands.size() || (session.open && word_of(commands[received.refused_at]) == "commit");
    std::vector<const char*> errors =
        commits ? std::vector{"1213", error_during_commit} : std::vector{"1213", "1205", interrupted, "1114", "1290"};
    if (session.purpose.session_lease.count() == 0) errors.push_back(server_shutdown);  // else see Fate::expire
    received.error = errors[dice_() % errors.size()];
  }

  // --- Carrying out ---

  void pump(int number) {
    for (auto found = sessions_.find(number); found != sessions_.end(); found = sessions_.find(number)) {
      Session& session = found->second;
      if (!session.queue.empty()) {
        if (!carry_out(session, session.queue.front())) return;
        continue;
      }
      if (session.client_left) return end(number);
      const nanoseconds lease = session.purpose.session_lease;
      const nanoseconds wait_timeout = lease.count() > 0 ? lease : unused;
      return session.timer.arm(saturating_add(executor_.now(), wait_timeout), [this, number] {
        if (!sessions_.at(number).silent) wire_.break_connections("fake: the server ended the session", number);
        end(number);
      });
    }
  }
  // False: it waits.
  [[nodiscard]] bool carry_out(Session& session, Received& received) {
    // A query is never carried out twice.
    const bool late = (received.fate == Fate::late || received.fate == Fate::duplicate) && !received.was_late;
    if (late && !received.late_at_end) return be_late(session, received);
    const auto& commands = received.query.commands;
    for (; received.next < commands.size(); ++received.next) {
      const Command& command = commands[received.next];
      std::string error = received.refused_at == received.next ? received.error : std::string();
      if (error.empty() && refusal) error = refusal(session.process, word_of(command));
      // The server says so if a query is interrupted that waits for a user lock.
      const bool interrupts_wait =
          error == interrupted && (word_of(command).ends_with(".wait") || word_of(command).ends_with(".get"));
      Step step{.error = std::move(error)};
      if (interrupts_wait) step = {.rows = {.rows = {{std::nullopt, std::nullopt}}}};
      if (step.error.empty() && !interrupts_wait) step = execute(session, command);
      if (step.waits) return false;
      session.timer.disarm();
      if (!step.error.empty()) {
        fail(session, step.error);
        return true;
      }
      received.results.push_back(std::move(step.rows));
      const bool in_transaction = session.open || received.wrapped || (late && received.next + 1 == commands.size());
      if (!in_transaction) commit(session);
    }
    if (late) return be_late(session, received);
    if (received.refused_at == commands.size() && !received.error.empty()) {
      fail(session, received.error);
      return true;
    }
    if (!session.open) commit(session);
    finish(session, {.results = std::move(received.results)});
    return true;
  }
  [[nodiscard]] bool be_late(Session& session, Received& received) {
    received.was_late = true;
    session.timer.arm(saturating_add(executor_.now(), delay()), [this, number = session.number] { pump(number); });
    return false;
  }
  void resume(int session) override {
    if (session < 0) return;
    executor_.post(lifetime_.guard([this, session] {
      const auto found = sessions_.find(session);
      if (found != sessions_.end() && found->second.waits_for != nullptr) pump(session);
    }));
  }
  void limit_wait(int session, nanoseconds patience) override {
    sessions_.at(session).timer.arm(saturating_add(executor_.now(), patience), [this, session] {
      time_out(sessions_.at(session));
      pump(session);
    });
  }
  void fail(Session& session, const std::string& error) {
    session.begun = false;
    const Received& received = session.queue.front();
    const bool rolls_back = !session.open || error == "1213" || error == error_during_commit;
    if (ends_session(static_cast<unsigned>(std::stoul(error)))) {
      const bool answers = received.fate != Fate::lose_answer;
      session.queue.clear();
      return break_off(session, killed, answers ? error : std::string());
    }
    if (rolls_back) {
      error == error_during_commit&& dice_() % 2 == 0 ? commit(session) : roll_back(session);
      session.open = false;
    }
    finish(session, sql::FakeReply::refused(error, std::min(received.next, received.query.commands.size())));
  }
  void end(int number) {
    const auto found = sessions_.find(number);
    if (found == sessions_.end()) return;
    FakeTables::end(found->second);
    sessions_.erase(found);
  }
  [[nodiscard]] Step execute(Session& session, const Command& command) {
    if (command.statement == nullptr) return execute_text(command.text);
    const std::string& word = command.statement->word;
    const auto param = [&] { return std::stoll(command.params.at(0).value_or("")); };
    if (word == "begin") {
      EXPECT_FALSE(session.open) << "a transaction inside a transaction";
      session.open = true;
    } else if (word == "commit" || word == "rollback") {
      word == "commit" ? commit(session) : roll_back(session);
      session.open = false;
    } else if (word == "set_patience" || word == "limit_wait") {
      session.patience = std::chrono::seconds(param());
    } else if (word == "restore_wait") {
      session.patience = std::chrono::seconds(1);
    } else if (word == "version") {
      if (tables_.empty()) return {.error = no_such_table};
      return version ? Step{.rows = {.rows = {{version}}}} : Step{};
    } else if (word == "tables") {
      return {.rows = all_tables()};
    } else if (word != "uncommitted") {
      return execute_on_table(session, command);
    }
    return {};
  }
  [[nodiscard]] Step execute_on_table(Session& session, const Command& command) {
    const std::string& word = command.statement->word;
    const std::string table = word.substr(0, word.find('.'));
    const bool of_locks_alone = word == table + ".wait" || word == table + ".leave" || word == table + ".get" ||
                                word == table + ".release" || word.ends_with("break_lock");
    const bool is_key = table.starts_with("fence") || word.ends_with(".wait") || word.ends_with(".leave");
    if (!tables_.contains(table) && !(is_key && of_locks_alone)) return {.error = no_such_table};
    if (word.find(".acquire") != std::string::npos) processes_[*command.params.at(1)] = session.process;
    if (word.ends_with(".grant")) processes_[*command.params.at(1)] = session.process;
    return FakeTables::execute(session, command);
  }
  [[nodiscard]] Step execute_text(const std::string& text) {
    if (!may_create && !text.starts_with("DO")) return {.error = "1044"};
    if (text.starts_with("CREATE TABLE")) {
      const std::size_t from = text.find("`.`") + 3;
      tables_.insert(text.substr(from, text.find('`', from) - from));
    } else if (text.starts_with("INSERT IGNORE INTO") && !version) {
      version = std::to_string(schema_version);
    }
    return {};
  }
  [[nodiscard]] Rows all_tables() const {
    Rows tables;
    for (const TableDefinition& each : layout()) {
      if (!tables_.contains(each.name)) continue;
      tables.rows.push_back({std::string(each.name), std::string(each.columns), "InnoDB"});
    }
    if (catalogue) catalogue(tables);
    return tables;
  }

  std::set<std::string, std::less<>> tables_;
  std::map<std::string, int> processes_;              // of owners
  std::map<std::string, sql::Statement> statements_;  // by their texts
};

}  // namespace dlock::mysql
