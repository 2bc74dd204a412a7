// Clients of the row strategies: the queries that they send, and the rows.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend_fixture.hpp"
#include "backends/postgres/sql/identifier.hpp"

namespace dlock::postgres {

class BackendRowsTest : public BackendTest {
 protected:
  explicit BackendRowsTest(LockKind which = LockKind::lock)
      : kind(which),
        table(table_of(options.strategy == Strategy::table ? "lease" : "optimistic", which)),
        channel(channel_of(options.schema, which)) {
    server.wire().records = true;
  }

  // This client begins anew, with the options as they are now.
  void restart() {
    server.wire().queries.clear();
    ours.emplace(engine, server, 1, options);
  }
  [[nodiscard]] FakeLockTable::Row& row(const std::string& name) { return server.row(table, name); }

  [[nodiscard]] std::vector<const FakeQuery*> queries(std::string_view words = {}) {
    std::vector<const FakeQuery*> found;
    for (const FakeQuery& query : server.wire().queries) {
      if (query.process == 1 && !query.is_heartbeat && (words.empty() || FakeLockTable::words_for(query) == words)) {
        found.push_back(&query);
      }
    }
    return found;
  }
  [[nodiscard]] std::size_t count(std::string_view words) { return queries(words).size(); }
  [[nodiscard]] Words take_sent() {
    Words words;
    for (const FakeQuery* query : queries()) words.push_back(FakeLockTable::words_for(*query));
    server.wire().queries.clear();
    return words;
  }
  [[nodiscard]] static Words column(const FakeQuery& query, std::size_t index) {
    return FakeLockTable::columns_of(query.commands.at(0)).at(index);
  }
  // How many requests each has.
  [[nodiscard]] std::vector<std::size_t> sizes(std::string_view words) {
    std::vector<std::size_t> sizes;
    for (const FakeQuery* query : queries(words)) sizes.push_back(column(*query, 0).size());
    return sizes;
  }

  [[nodiscard]] LockRequest request(const std::string& name, bool wait, Mode mode = Mode::exclusive) const {
    return {.name = name,
            .owner = {},
            .holder = {},
            .lease = 30s,
            .wait = wait,
            .kind = kind,
            .mode = mode,
            .permits = kind == LockKind::semaphore ? 2U : 1U};
  }
  // x0, x1, ...: in one turn.
  [[nodiscard]] Attempts contend_for(int names, const std::string& prefix = "x") {
    Attempts attempts;
    for (int i = 0; i < names; ++i) attempts.push_back(ours->contend(request(prefix + std::to_string(i), false)));
    engine.run();
    return attempts;
  }
  [[nodiscard]] std::unique_ptr<Attempt> held_by_others(const std::string& name, std::chrono::nanoseconds lease = 24h) {
    LockRequest theirs = request(name, false);
    theirs.lease = lease;
    auto attempt = others->contend(theirs);
    engine.run();
    EXPECT_TRUE(attempt->grant);
    return attempt;
  }

  void break_listening_connection() {
    int connection = 0;
    for (const FakeQuery* query : queries()) {
      if (query->purpose.word == "listen") connection = query->connection;
    }
    server.wire().break_connections("gone", connection);
  }
  // Whatever notifies is refused, as where the server's queue of notifications is full.
  void refuse_notifications(std::string_view word) {
    refuse(word, "54000");
    refuses = [](const Command& command) { return !command.params.back()->empty(); };
  }

  const LockKind kind;
  const std::string table;
  const std::string channel;
};

inline constexpr std::array row_strategies{Strategy::table, Strategy::optimistic};

}  // namespace dlock::postgres
