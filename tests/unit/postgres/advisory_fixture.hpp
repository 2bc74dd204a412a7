// The advisory locks of a fake server, and acquires of them.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/postgres/session_locks/session_locks.hpp"
#include "tests/simulation/postgres/array_elements.hpp"
#include "tests/simulation/postgres/fake_connection.hpp"
#include "tests/support/manual_engine.hpp"
#include "tests/support/recording_host.hpp"

namespace dlock::postgres {

using namespace std::chrono_literals;

// As a real server has them: whose session has a lock gets it again, and whoever waits gets it when it is free.
class FakeLocks {
 public:
  FakeLocks(test::ManualEngine& engine, FakeServer& server) : engine_(engine), server_(server) {
    server.reply = [this](const FakeQuery& query) { return reply(query); };
    server.aside = [this](const FakeQuery& query) -> std::optional<FakeReply> {
      if (sql == nullptr || !query.uses(statements().proof)) return std::nullopt;
      ++proofs;
      return proof ? *proof : FakeReply::of({{std::to_string(1000 + query.connection), "t"}});
    };
  }

  // What is answered instead, if anything is.
  std::function<std::optional<FakeReply>(const FakeQuery&)> instead;
  // Their answers do not come.
  bool holds_tries = false;
  bool holds_unlocks = false;
  // A wait in the server ends when its time is over, once the server looks.
  bool ends_slices = false;
  // What is answered to a session that proves that its first lock is one, and how often that was asked.
  std::optional<FakeReply> proof;
  int proofs = 0;
  // By key, somebody who is no connection of ours has it.
  void seize(const std::string& key) { holders_[key] = {.connection = 0, .times = 1}; }
  void give_back(const std::string& key) {
    holders_.erase(key);
    engine_.post([this] { server_.release(); });
  }
  // A connection is gone.
  void forget(int connection) {
    std::erase_if(holders_, [&](const auto& item) { return item.second.connection == connection; });
  }
  [[nodiscard]] bool held(const std::string& key) const { return holders_.contains(key); }
  [[nodiscard]] int holder(const std::string& key) const { return holders_.at(key).connection; }
  [[nodiscard]] std::size_t size() const { return holders_.size(); }

  const AdvisorySql* sql = nullptr;
  bool entered_twice = false;  // a session was given what it had
  std::int64_t last_token = 100;

  [[nodiscard]] const AdvisoryStatements& statements(
      AdvisoryKey::KeySpace space = AdvisoryKey::KeySpace::bigint) const {
    return sql->of(space);
  }
  // Takes the lock, as an error does that comes after the grant.
  void take(const std::string& key, int connection) { (void)grant(key, connection); }

 private:
  struct Holder {
    int connection = 0;
    int times = 0;
  };

  FakeReply reply(const FakeQuery& query) {
    if (instead) {
      if (auto other = instead(query)) return *std::move(other);
    }
    const AdvisoryStatements& s = statements();
    const std::string pid = std::to_string(1000 + query.connection);
    if (query.uses(s.try_lock)) {
      if (holds_tries) return FakeReply::held();
      if (!grant(query.param(0), query.connection)) return {};
      return FakeReply::of({{std::to_string(++last_token), pid}});
    }
    if (query.uses(s.try_many)) {
      if (holds_tries) return FakeReply::held();
      const auto keys = elements_of(query.param(0));
      const auto names = elements_of(query.param(1));
      std::vector<Rows::Row> rows;
      for (std::size_t i = 0; i < keys.size(); ++i) {
        if (grant(keys[i], query.connection)) rows.push_back({names[i], std::to_string(++last_token), pid});
      }
      return FakeReply::of(std::move(rows));
    }
    if (query.uses(s.lock_slice)) {
      // Behind an unlock, where it goes on waiting.
      if (query.uses(s.unlock)) (void)unlock(elements_of(query.param(0)).front(), query.connection);
      if (!grant(query.param(0), query.connection)) {
        const bool over = engine_.now() >= query.sent + std::chrono::milliseconds(std::stoi(query.param(3)));
        return ends_slices && over ? FakeReply::refused("55P03") : FakeReply::held();
      }
      return FakeReply::of({{std::to_string(++last_token), pid}});
    }
    if (query.uses(s.unlock)) {
      if (holds_unlocks) return FakeReply::held();
      std::vector<Rows::Row> rows;
      for (const std::string& key : elements_of(query.param(0))) {
        rows.push_back({unlock(key, query.connection) ? "t" : "f", key});
      }
      return FakeReply::of(std::move(rows));
    }
    return {};
  }

  bool grant(const std::string& key, int connection) {
    auto& holder = holders_[key];
    if (holder.times > 0 && holder.connection != connection) return false;
    if (holder.times > 0) entered_twice = true;
    holder.connection = connection;
    ++holder.times;
    return true;
  }
  bool unlock(const std::string& key, int connection) {
    const auto found = holders_.find(key);
    if (found == holders_.end() || found->second.connection != connection) return false;
    if (--found->second.times == 0) give_back(key);
    return true;
  }

  test::ManualEngine& engine_;
  FakeServer& server_;
  std::map<std::string, Holder> holders_;
};

class PostgresAdvisory : public testing::Test {
 protected:
  using Attempt = test::Attempt;

  PostgresAdvisory() {
    options.lease = 12s;
    options.max_connections = 2;
    start();
  }
  ~PostgresAdvisory() override {
    for (auto& attempt : attempts) attempt->contention.reset();
  }

  void start(SessionLocks::Limits limits = {}) {
    locks.reset();
    locks.emplace(Services{host, options, dialling, commands, news, schema}, limits);
    table.sql = &sql_;
  }

  Attempt& contend(const std::string& name, bool wait) {
    auto attempt = std::make_unique<Attempt>();
    attempt->request = {
        .name = name, .owner = host.new_owner_id(), .holder = "me", .lease = options.lease, .wait = wait};
    attempts.push_back(std::move(attempt));
    Attempt& added = *attempts.back();
    added.contention = locks->contend(added.request, added);
    return added;
  }
  // Without running the engine, and with.
  Attempt& try_soon(const std::string& name) { return contend(name, false); }
  Attempt& try_now(const std::string& name) {
    Attempt& attempt = try_soon(name);
    engine.run();
    return attempt;
  }
  Attempt& wait_for(const std::string& name) {
    Attempt& attempt = contend(name, true);
    engine.run();
    return attempt;
  }
  // Somebody else has it, and gives it to us: it lives on a connection of the pool.
  Attempt& get_after_waiting(const std::string& name) {
    table.seize(key(name));
    Attempt& attempt = wait_for(name);
    table.give_back(key(name));
    engine.run();
    return attempt;
  }
  // From now on, the others as ever.
  void answer(const Statement& statement, const FakeReply& reply) {
    table.instead = [&statement, reply](const FakeQuery& query) -> std::optional<FakeReply> {
      return query.uses(statement) ? std::optional(reply) : std::nullopt;
    };
  }
  void release_soon(const Attempt& attempt) {
    locks->release(*attempt.grant, [this](const ReleaseOutcome& outcome) { released.push_back(outcome); });
  }
  ReleaseOutcome::Status release(const Attempt& attempt) {
    release_soon(attempt);
    engine.run();
    EXPECT_FALSE(released.empty());
    return released.back().status;
  }
  [[nodiscard]] std::string key(const std::string& name) const { return lock_key(options, name).parameter; }
  [[nodiscard]] std::size_t count(const Statement& statement) const { return server.count(statement); }
  [[nodiscard]] const AdvisoryStatements& sql() const { return table.statements(); }
  [[nodiscard]] const FakeQuery& last(const Statement& statement) const {
    for (auto at = server.queries.rbegin(); at != server.queries.rend(); ++at) {
      if (at->uses(statement)) return *at;
    }
    throw std::logic_error("there was no such query");
  }
  // Breaks a connection, as the server sees it, too.
  void break_connection(int connection) {
    table.forget(connection);
    server.break_connections("gone", connection);
    engine.run();
  }

  test::ManualEngine engine;
  FakeServer server;
  FakeLocks table{engine, server};
  Options options = with_strategy();
  FullServer full{engine};
  Dialling dialling{options, server.connections(), 5s, 4s, &full};
  test::RecordingHost host{engine};
  Schema schema{engine, options, dialling};
  common::ConnectionNews news{host, false};
  common::ConnectionNews::Source observer{news};
  Commands commands{engine, options, dialling, schema, observer};
  std::optional<SessionLocks> locks;
  std::vector<std::unique_ptr<Attempt>> attempts;
  std::vector<ReleaseOutcome> released;

 private:
  static Options with_strategy() {
    Options options;
    options.strategy = Strategy::advisory;
    return options;
  }
  const AdvisorySql sql_{options};
};

}  // namespace dlock::postgres
