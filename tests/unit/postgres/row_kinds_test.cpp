// Other kinds than plain locks with the row strategies. What several may hold: what is asked of a row at once is one
// statement. Elections: locks in a table of their own, with what the leader says of itself, and everybody who looks is
// told of each change.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rows_fixture.hpp"
#include "tests/simulation/postgres/array_elements.hpp"

namespace dlock::postgres {

namespace {

// --- What several may hold -------------------------------------------------------------------------------------------

// The table, as far as it matters here: who holds, and whose mark keeps readers out.
struct SharingTable {
  struct Row {
    std::map<std::string, std::int64_t> holders;  // with the permits that each has
    std::int64_t permits = 0;
    std::string writer;

    [[nodiscard]] std::int64_t used() const {
      std::int64_t sum = 0;
      for (const auto& [owner, weight] : holders) sum += weight;
      return sum;
    }
  };
  std::map<std::string, Row> rows;
  std::int64_t token = 0;

  Rows change(const Command& command) {
    std::vector<std::vector<std::string>> columns;
    for (std::size_t i = 0; i < 8; ++i) columns.push_back(elements_of(*command.params.at(i)));
    Rows answer;
    for (const int what : {-1, 0, 1, 2}) {
      for (std::size_t i = 0; i < columns[0].size(); ++i) {
        if (std::stoi(columns[2][i]) != what) continue;
        answer.rows.push_back(one(columns, i, what));
        answer.rows.back().front() = std::to_string(i + 1);
      }
    }
    return answer;
  }

 private:
  Rows::Row one(const std::vector<std::vector<std::string>>& columns, std::size_t i, int what) {
    const Rows::Row no = {"", "f", std::nullopt, std::nullopt, std::nullopt};
    const std::string& owner = columns[1][i];
    Row& row = rows[columns[0][i]];
    const std::int64_t weight = std::stoll(columns[5][i]);
    const std::int64_t permits = std::stoll(columns[6][i]);
    if (what <= 0 && row.writer == owner) row.writer.clear();
    if (what < 2) {
      const bool had = what <= 0 ? row.holders.erase(owner) != 0 : row.holders.contains(owner);
      return had ? Rows::Row{"", "t", std::nullopt, std::nullopt, std::nullopt} : no;
    }
    if (!row.holders.empty() && row.permits != permits) {
      return {"", "f", std::nullopt, std::to_string(row.permits), std::nullopt};
    }
    row.permits = permits;
    if (row.used() + weight <= permits && (row.writer.empty() || weight == permits)) {
      row.holders.emplace(owner, weight);
      if (row.writer == owner) row.writer.clear();
      return {"", "t", std::to_string(++token), std::nullopt, std::nullopt};
    }
    if (columns[7][i] != "0") row.writer = owner;
    return {"", "f", std::nullopt, std::nullopt, "20000"};
  }
};

class PostgresSharing : public RowsTest {
 protected:
  explicit PostgresSharing(LockKind what) : RowsTest(Strategy::table, what) {
    server.reply = [this](const FakeQuery& query) {
      if (next_reply) {
        if (auto reply = next_reply(query)) return *std::move(reply);
      }
      FakeReply reply;
      for (const Command& command : query.commands) {
        const bool change = command.statement != nullptr && command.statement->sql == statements.change.sql;
        reply.results.push_back(change ? table.change(command) : Rows());
      }
      return reply;
    };
  }

  std::unique_ptr<Attempt> contend(Mode mode, std::uint32_t permits = 1, bool wait = true) {
    auto attempt = std::make_unique<Attempt>();
    attempt->request = {.name = "x",
                        .owner = client->host.new_owner_id(),
                        .holder = "host:1:test",
                        .lease = 30s,
                        .wait = wait,
                        .kind = kind,
                        .mode = mode,
                        .permits = permits};
    attempt->contention = client->locks->contend(attempt->request, *attempt);
    return attempt;
  }
  [[nodiscard]] std::vector<const FakeQuery*> changes() const {
    std::vector<const FakeQuery*> found;
    for (const FakeQuery& query : server.queries) {
      if (query.sql() == statements.change.sql) found.push_back(&query);
    }
    return found;
  }
  [[nodiscard]] std::vector<std::string> column(const FakeQuery& query, std::size_t index) const {
    return elements_of(*query.commands.at(0).params.at(index));
  }

  const RowStatements statements = sharing_statements("dlock", Durability::sync, kind);
  SharingTable table;
};

class PostgresSemaphores : public PostgresSharing {
 protected:
  PostgresSemaphores() : PostgresSharing(LockKind::semaphore) {}
};
class PostgresReadWriteLocks : public PostgresSharing {
 protected:
  PostgresReadWriteLocks() : PostgresSharing(LockKind::read_write) {}
};

using Texts = std::vector<std::string>;

TEST_F(PostgresSemaphores, AllThatIsAskedInATurnIsOneStatement) {
  const auto first = contend(Mode::exclusive, 2);
  const auto second = contend(Mode::exclusive, 2);
  engine.run();
  ASSERT_TRUE(first->grant && second->grant);
  EXPECT_EQ(second->grant->kind, LockKind::semaphore);
  EXPECT_GT(second->grant->token, first->grant->token);
  client->release(*first->grant);
  client->renew(*second->grant);
  const auto third = contend(Mode::exclusive, 2);
  engine.run();
  ASSERT_EQ(changes().size(), 2U);
  EXPECT_EQ(changes()[1]->commands.size(), 1U);
  EXPECT_EQ(column(*changes()[1], 2), (Texts{"0", "1", "2"}));
  EXPECT_EQ(column(*changes()[1], 6), (Texts{"1", "1", "2"}));
  EXPECT_EQ(client->releases.at(0).status, ReleaseOutcome::Status::released);
  EXPECT_EQ(client->renewals.at(0).status, RenewOutcome::Status::renewed);
  EXPECT_TRUE(third->grant);
}

TEST_F(PostgresSemaphores, AnotherNumberOfPermitsIsRefused) {
  const auto first = contend(Mode::exclusive, 2);
  engine.run();
  const auto other = contend(Mode::exclusive, 3);
  engine.run();
  ASSERT_TRUE(other->failure);
  EXPECT_EQ(other->failure->code, errc::invalid_argument);
  EXPECT_NE(other->failure->detail.find("with 2 permits"), std::string::npos) << other->failure->detail;
}

TEST_F(PostgresSemaphores, WhoseRowWasMadeMeanwhileAsksAgain) {
  next_reply = [this, first = true](const FakeQuery& query) mutable -> std::optional<FakeReply> {
    if (query.sql() != statements.change.sql || !std::exchange(first, false)) return std::nullopt;
    return FakeReply::of({{"1", std::nullopt, std::nullopt, std::nullopt, std::nullopt}});
  };
  const auto attempt = contend(Mode::exclusive, 2, false);
  engine.run();
  EXPECT_EQ(attempt->busy_reports, 0);
  EXPECT_TRUE(attempt->grant);
}

TEST_F(PostgresSemaphores, WhereNobodyCanBeNotifiedNobodyIsHeldUp) {
  next_reply = [this](const FakeQuery& query) -> std::optional<FakeReply> {
    if (query.sql() != statements.change.sql || query.param(8).empty()) return std::nullopt;
    return FakeReply::refused("54000");
  };
  const auto attempt = contend(Mode::exclusive, 2, false);
  engine.run();
  EXPECT_TRUE(attempt->grant);
}

TEST_F(PostgresSemaphores, ARenewalFindsThatOthersAreOverAndIsNotHeldUpEither) {
  const auto attempt = contend(Mode::exclusive, 2, false);
  engine.run();
  ASSERT_TRUE(attempt->grant);
  next_reply = [this](const FakeQuery& query) -> std::optional<FakeReply> {
    if (query.sql() != statements.change.sql || query.param(8).empty()) return std::nullopt;
    return FakeReply::refused("54000");
  };
  client->renew(*attempt->grant);
  engine.run();
  ASSERT_EQ(client->renewals.size(), 1U);
  EXPECT_EQ(client->renewals[0].status, RenewOutcome::Status::renewed);
}

// One row that somebody keeps locked is searched for, as with plain locks.
TEST_F(PostgresSemaphores, WhatIsRefusedOfManyIsSearchedFor) {
  const auto first = contend(Mode::exclusive, 2);
  engine.run();
  next_reply = [this](const FakeQuery& query) -> std::optional<FakeReply> {
    if (query.sql() != statements.change.sql || column(query, 2) == Texts{"1"}) return std::nullopt;
    return FakeReply::refused("55P03");
  };
  client->renew(*first->grant);
  const auto stuck = contend(Mode::exclusive, 2, false);
  engine.run();
  ASSERT_EQ(client->renewals.size(), 1U);
  EXPECT_EQ(client->renewals[0].status, RenewOutcome::Status::renewed);
  ASSERT_TRUE(stuck->failure);
  EXPECT_EQ(stuck->failure->code, errc::unavailable) << "not busy";
}

TEST_F(PostgresReadWriteLocks, ReadersEnterTogetherAndAWriterAlone) {
  const auto one = contend(Mode::shared);
  const auto two = contend(Mode::shared);
  engine.run();
  ASSERT_TRUE(one->grant && two->grant);
  EXPECT_EQ(one->grant->mode, Mode::shared);
  const auto writer = contend(Mode::exclusive, 1, false);
  engine.run();
  EXPECT_EQ(writer->busy_reports, 1);
  EXPECT_EQ(column(*changes().back(), 5), column(*changes().back(), 6)) << "all permits";
  EXPECT_EQ(column(*changes().back(), 7), Texts{"0"}) << "it does not wait";
}

// Half of its mark is never more than its lease, and it looks before that is over.
TEST_F(PostgresReadWriteLocks, AWriterThatWaitsKeepsItsMarkUntilItEnters) {
  const auto reader = contend(Mode::shared);
  engine.run();
  const auto writer = contend(Mode::exclusive);
  engine.run();
  EXPECT_EQ(column(*changes().back(), 7), Texts{"6000"});
  const std::size_t before = changes().size();
  engine.advance(3s);
  EXPECT_GT(changes().size(), before);
  EXPECT_EQ(table.rows.at("x").writer, writer->request.owner.to_string());
  const auto late = contend(Mode::shared, 1, false);
  engine.run();
  EXPECT_EQ(late->busy_reports, 1);
  client->release(*reader->grant);
  engine.advance(3s);
  ASSERT_TRUE(writer->grant);
  EXPECT_EQ(table.rows.at("x").writer, "");
  const std::size_t entered = changes().size();
  writer->contention.reset();
  engine.advance(1s);
  EXPECT_EQ(changes().size(), entered) << "there is nothing to take away";
}

TEST_F(PostgresReadWriteLocks, AWriterThatGivesUpTakesItsMarkAway) {
  const auto reader = contend(Mode::shared);
  engine.run();
  const auto writer = contend(Mode::exclusive);
  engine.run();
  EXPECT_FALSE(table.rows.at("x").writer.empty());
  writer->contention.reset();
  engine.run();
  EXPECT_TRUE(table.rows.at("x").writer.empty());
  const auto late = contend(Mode::shared, 1, false);
  engine.run();
  EXPECT_TRUE(late->grant);
}

// Its last look is under way, and leaves a mark.
TEST_F(PostgresReadWriteLocks, AWriterThatGivesUpWhileItLooksTakesItsMarkAway) {
  const auto reader = contend(Mode::shared);
  engine.run();
  next_reply = [this](const FakeQuery& query) -> std::optional<FakeReply> {
    if (query.sql() != statements.change.sql) return std::nullopt;
    return FakeReply::held();
  };
  const auto writer = contend(Mode::exclusive);
  engine.run();
  writer->contention.reset();
  heal();
  server.release();
  engine.run();
  EXPECT_TRUE(table.rows.at("x").writer.empty());
}

// --- Elections -------------------------------------------------------------------------------------------------------

class PostgresElections : public RowsTest, public testing::WithParamInterface<Strategy> {
 protected:
  PostgresElections() : RowsTest(GetParam(), LockKind::election) {}

  std::unique_ptr<Attempt> stand(RowClient& who, const std::string& name, const std::string& value) {
    auto attempt = std::make_unique<Attempt>();
    attempt->request = {.name = name,
                        .owner = who.host.new_owner_id(),
                        .holder = "host:1:test",
                        .lease = 30s,
                        .wait = true,
                        .kind = LockKind::election,
                        .value = value};
    attempt->contention = who.locks->contend(attempt->request, *attempt);
    return attempt;
  }
};
INSTANTIATE_TEST_SUITE_P(Strategies, PostgresElections, testing::Values(Strategy::table, Strategy::optimistic),
                         [](const auto& strategy) { return std::string(to_string(strategy.param)); });

TEST_P(PostgresElections, KeepTheValueWithTheLeader) {
  const auto leading = stand(*client, "x", "10.0.0.7:80");
  engine.run();
  ASSERT_TRUE(leading->grant);
  EXPECT_EQ(leading->grant->kind, LockKind::election);
  EXPECT_EQ(rows.rows.at("x").holder, "host:1:test\n10.0.0.7:80");
}

TEST_P(PostgresElections, WhoLooksIsToldOfTheGrantAndOfTheEnd) {
  rows.give_to("x", "somebody", 1h);
  rows.free("x");
  int changes = 0;
  const auto watch = client->locks->watch(LockKind::election, "x", [&changes] { ++changes; });
  engine.advance(100ms);
  EXPECT_EQ(changes, 1) << "it may have changed before anybody listened";
  engine.advance(1min);
  EXPECT_EQ(changes, 1);
  const auto other = make();
  const auto leading = stand(*other, "x", "v");
  engine.advance(1s);
  ASSERT_TRUE(leading->grant);
  EXPECT_EQ(changes, 2);
  other->release(*leading->grant);
  engine.advance(1s);
  EXPECT_EQ(changes, 3);
}

// Who only looks must not keep the news from those who want to lead.
TEST_P(PostgresElections, OfOneClientAllAreTold) {
  const auto leader = make();
  const auto leading = stand(*leader, "x", "first");
  engine.run();
  int changes = 0;
  const auto watch = client->locks->watch(LockKind::election, "x", [&changes] { ++changes; });
  const auto next = stand(*client, "x", "second");
  engine.advance(100ms);
  const int before = changes;
  leader->release(*leading->grant);
  engine.advance(50ms);
  EXPECT_GT(changes, before);
  EXPECT_TRUE(next->grant) << "a second before it would have looked by itself";
}

TEST_P(PostgresElections, WhereNobodyCanBeToldAGrantIsNotHeldUp) {
  rows.give_to("x", "somebody", 1h);
  rows.free("x");
  const auto watch = client->locks->watch(LockKind::election, "x", [] {});
  engine.advance(100ms);
  next_reply = [this](const FakeQuery& query) -> std::optional<FakeReply> {
    const auto& params = query.commands.front().params;
    if (rows.words_for(query) != "acquire" || params.back() != rows.channel) return std::nullopt;
    return FakeReply::refused("54000", query.commands.size());
  };
  const auto leading = stand(*client, "x", "v");
  engine.advance(100ms);
  EXPECT_TRUE(leading->grant);
}

}  // namespace

}  // namespace dlock::postgres
