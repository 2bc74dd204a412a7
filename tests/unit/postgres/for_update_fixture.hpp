// strategy=for-update against a server in memory that knows what a row lock is.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/postgres/options.hpp"
#include "backends/postgres/schema/layout.hpp"
#include "backends/postgres/schema/schema.hpp"
#include "backends/postgres/services.hpp"
#include "backends/postgres/session_locks/session_locks.hpp"
#include "backends/postgres/sessions/commands.hpp"
#include "tests/simulation/postgres/fake_connection.hpp"
#include "tests/support/manual_engine.hpp"
#include "tests/support/recording_host.hpp"

namespace dlock::postgres {

using namespace std::chrono_literals;

// Rows, and which connection's transaction has locked them.
class FakeRows {
 public:
  explicit FakeRows(const ForUpdateStatements& statements) : use_(statements) {}

  std::set<std::string> rows;
  std::map<std::string, int> locked;  // by whom; 0 is somebody who is no connection of ours
  std::set<int> open;                 // transactions
  std::int64_t token = 1000;
  std::string insertion_refused;  // SQLSTATE
  std::function<void()> when_freed;
  std::function<TimePoint()> now;  // unless it is empty, slices end when it is time

  // As Connection promises: what the query says, or the refusal of one of its commands.
  [[nodiscard]] FakeReply reply(const FakeQuery& query) {
    FakeReply reply;
    for (std::size_t i = 0; i < query.commands.size(); ++i) {
      const Command& command = query.commands[i];
      const auto is = [&](const Statement& statement) {
        return command.statement != nullptr && command.statement->word == statement.word;
      };
      Rows answer;
      if (is(use_.begin)) {
        EXPECT_FALSE(open.contains(query.connection)) << "a transaction inside a transaction";
        open.insert(query.connection);
      } else if (is(use_.rollback) || is(use_.commit)) {
        forget(query.connection);
      } else if (is(use_.ensure)) {
        if (!insertion_refused.empty()) return FakeReply::refused(insertion_refused, i);
        rows.insert(command.params.at(0).value());
      } else if (is(use_.try_lock) || is(use_.lock)) {
        const std::string& name = command.params.at(0).value();
        const auto holder = locked.find(name);
        if (holder != locked.end() && is(use_.lock) && !slice_is_over(query)) return undone(query, FakeReply::held());
        if (holder != locked.end()) return FakeReply::refused(is(use_.lock) ? "57014" : "55P03", i);
        if (rows.contains(name)) {
          locked[name] = query.connection;
          answer.rows = {{std::to_string(++token), "dlock#..."}};
        }
      }
      reply.results.push_back(std::move(answer));
    }
    return reply;
  }
  // Its connection is gone, or its transaction over.
  void forget(int connection) {
    open.erase(connection);
    const auto freed = std::erase_if(locked, [&](const auto& item) { return item.second == connection; });
    if (freed > 0 && when_freed) when_freed();
  }

 private:
  [[nodiscard]] bool slice_is_over(const FakeQuery& query) const {
    if (!now) return false;
    std::chrono::milliseconds slice{};
    for (const Command& command : query.commands) {
      if (command.statement != nullptr && command.statement->word == use_.set_patience.word)
        slice = std::chrono::milliseconds(std::stoi(*command.params[0]));
    }
    return now() >= query.sent + slice;
  }
  // It will be played again from the beginning.
  [[nodiscard]] FakeReply undone(const FakeQuery& query, FakeReply reply) {
    if (query.uses(use_.begin)) open.erase(query.connection);
    return reply;
  }

  const ForUpdateStatements& use_;
};

class ForUpdateTest : public testing::Test, private common::ConnectionObserver {
 protected:
  static constexpr auto lease = 20s;

  ForUpdateTest() {
    rows.rows = {"a", "b", "c", "d", "e"};
    server.reply = [this](const FakeQuery& query) { return rows.reply(query); };
  }

  [[nodiscard]] std::unique_ptr<test::Attempt> contend(const std::string& name, bool wait) {
    auto attempt = std::make_unique<test::Attempt>();
    attempt->request = {
        .name = name, .owner = host.new_owner_id(), .holder = "host:1:test", .lease = 10s, .wait = wait};
    attempt->contention = locks->contend(attempt->request, *attempt);
    return attempt;
  }
  [[nodiscard]] std::unique_ptr<test::Attempt> try_lock(const std::string& name) {
    auto attempt = contend(name, false);
    engine.run();
    return attempt;
  }
  [[nodiscard]] std::unique_ptr<test::Attempt> wait_for(const std::string& name) {
    auto attempt = contend(name, true);
    engine.run();
    return attempt;
  }
  [[nodiscard]] std::unique_ptr<test::Attempt> wait_for_taken(const std::string& name) {
    take_elsewhere(name);
    return wait_for(name);
  }
  // As many as there may be connections.
  [[nodiscard]] std::array<std::unique_ptr<test::Attempt>, 3> take_all() {
    return {try_lock("a"), try_lock("b"), try_lock("c")};
  }
  // Somebody else lets go, or takes hold.
  void take_elsewhere(const std::string& name) { rows.locked[name] = 0; }
  void free_elsewhere(const std::string& name) {
    rows.locked.erase(name);
    server.release();
    engine.run();
  }
  ReleaseOutcome release(const Grant& grant) {
    std::optional<ReleaseOutcome> outcome;
    locks->release(grant, [&](ReleaseOutcome o) {
      EXPECT_FALSE(outcome) << "answered twice";
      outcome = std::move(o);
    });
    engine.advance(options.response_timeout);
    if (!outcome) {
      ADD_FAILURE() << "no answer";
      return {.status = ReleaseOutcome::Status::failed};
    }
    return *outcome;
  }
  // The texts of a query, the statements by their names.
  [[nodiscard]] std::vector<std::string> words(const FakeQuery& query) const {
    std::vector<std::string> words;
    for (const Command& command : query.commands) {
      const std::string word = command.statement == nullptr ? command.text : command.statement->word;
      words.push_back(word.substr(word.find('.') + 1));
    }
    return words;
  }

  test::ManualEngine engine;
  test::RecordingHost host{engine};
  FakeServer server;
  const Options options = few_connections();
  FullServer full{engine};
  Dialling dialling{options, server.connections(), options.connect_timeout, options.response_timeout, &full};
  Schema schema{engine, options, dialling};
  common::ConnectionNews news{host, false};
  Commands commands{engine, options, dialling, schema, *this};
  std::unique_ptr<SessionLocks> locks =
      std::make_unique<SessionLocks>(Services{host, options, dialling, commands, news, schema}, SessionLocks::Limits{});
  const ForUpdateStatements statements = for_update_statements(options.schema, options.durability);
  FakeRows rows{statements};

 private:
  static Options few_connections() {
    Options options;
    options.strategy = Strategy::for_update;
    options.lease = lease;
    options.connect_timeout = 5s;
    options.response_timeout = 2s;
    options.max_connections = 3;
    return options;
  }
  void connected() override {}
  void broken(const Failure& /*why*/) override {}
};

using Words = std::vector<std::string>;

}  // namespace dlock::postgres
