// Clients of the row strategies over one fake server and its table.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "backends/postgres/rows/row_locks.hpp"
#include "backends/postgres/sql/identifier.hpp"
#include "tests/simulation/postgres/fake_connection.hpp"
#include "tests/simulation/postgres/fake_lock_table.hpp"
#include "tests/support/manual_engine.hpp"
#include "tests/support/recording_host.hpp"

namespace dlock::postgres {

using namespace std::chrono_literals;
using test::Attempt;

constexpr std::chrono::nanoseconds response_timeout = 4s;

[[nodiscard]] inline Options row_options(Strategy strategy, Pooler pooler = Pooler::detect) {
  Options options;
  options.strategy = strategy;
  options.pooler = pooler;
  options.response_timeout = response_timeout;
  options.connect_timeout = 5s;
  return options;
}

// What commands go over, and nobody who cares about the connection.
struct CommandLine final : common::ConnectionObserver {
  CommandLine(Executor& executor, FakeServer& server, Options what)
      : options(std::move(what)),
        full(executor),
        dialling{options, server.connections(), options.connect_timeout, options.response_timeout, &full},
        schema(executor, options, dialling),
        commands(std::in_place, executor, options, dialling, schema, *this) {}

  void connected() override { ++times_connected; }
  void broken(const Failure& why) override { failures.push_back(why); }

  const Options options;
  FullServer full;
  const Dialling dialling;
  int times_connected = 0;
  std::vector<Failure> failures;
  Schema schema;
  std::optional<Commands> commands;
};

// One client.
struct RowClient {
  RowClient(Executor& executor, FakeServer& server, Options options, LockKind kind = LockKind::lock)
      : host(executor),
        line(executor, server, std::move(options)),
        news(host, true),
        locks(std::in_place, Services{host, line.options, line.dialling, *line.commands, news, line.schema}, kind) {}

  std::unique_ptr<Attempt> contend(const std::string& name, bool wait = true, std::chrono::nanoseconds lease = 30s) {
    auto attempt = std::make_unique<Attempt>();
    attempt->request = {
        .name = name, .owner = host.new_owner_id(), .holder = "host:1:test", .lease = lease, .wait = wait};
    attempt->contention = locks->contend(attempt->request, *attempt);
    return attempt;
  }
  void release(const Grant& grant) {
    locks->release(grant, [this](const ReleaseOutcome& outcome) { releases.push_back(outcome); });
  }
  void renew(const Grant& grant) {
    locks->renew(grant, [this](const RenewOutcome& outcome) { renewals.push_back(outcome); });
  }

  test::RecordingHost host;
  CommandLine line;
  common::ConnectionNews news;
  std::vector<ReleaseOutcome> releases;
  std::vector<RenewOutcome> renewals;
  std::optional<RowLocks> locks;
};

class RowsTest : public testing::Test {
 protected:
  explicit RowsTest(Strategy which, LockKind what = LockKind::lock)
      : strategy(which), kind(what), rows(engine, which, what) {
    rows.channel = channel_of(row_options(which).schema, what);
    rows.notify = [this](const std::string& channel, const std::string& name) { server.notify(channel, name); };
    server.reply = [this](const FakeQuery& query) {
      if (next_reply) {
        if (auto reply = next_reply(query)) return *std::move(reply);
      }
      return rows.carry_out(query);
    };
  }

  ~RowsTest() override { next_reply = nullptr; }  // what a test has put there is gone

  [[nodiscard]] std::unique_ptr<RowClient> make(Pooler pooler = Pooler::detect) {
    return std::make_unique<RowClient>(engine, server, row_options(strategy, pooler), kind);
  }
  // Everything that was asked but on connections for listening, in words: {"acquire", "release acquire"}.
  [[nodiscard]] std::vector<std::string> said() const {
    std::vector<std::string> words;
    for (const FakeQuery& query : server.queries) {
      if (query.purpose.word == "commands") words.push_back(rows.words_for(query));
    }
    return words;
  }
  [[nodiscard]] std::size_t count(const std::string& words) const {
    std::size_t count = 0;
    for (const FakeQuery& query : server.queries) count += rows.words_for(query) == words ? 1 : 0;
    return count;
  }
  [[nodiscard]] const FakeQuery& last(const std::string& words) const {
    for (std::size_t i = server.queries.size(); i > 0; --i) {
      if (rows.words_for(server.queries[i - 1]) == words) return server.queries[i - 1];
    }
    throw std::logic_error("nobody has said " + words);
  }
  // Queries of these words get this reply, and are not carried out; all others are.
  void reply_to(const std::string& words, const FakeReply& reply, int times = 1'000'000) {
    next_reply = [this, words, reply, left = times](const FakeQuery& query) mutable -> std::optional<FakeReply> {
      if (rows.words_for(query) != words || left-- <= 0) return std::nullopt;
      return reply;
    };
  }
  // Carried out, but the answer is lost with the connection.
  void lose_answers_to(const std::string& words, int times = 1) {
    next_reply = [this, words, left = times](const FakeQuery& query) mutable -> std::optional<FakeReply> {
      if (rows.words_for(query) != words || left-- <= 0) return std::nullopt;
      (void)rows.carry_out(query);
      return FakeReply::lost();
    };
  }
  void heal() { next_reply = nullptr; }

  const Strategy strategy;
  const LockKind kind;
  test::ManualEngine engine;
  FakeServer server;
  FakeLockTable rows;
  std::function<std::optional<FakeReply>(const FakeQuery&)> next_reply;
  std::unique_ptr<RowClient> client = make();
};

}  // namespace dlock::postgres
