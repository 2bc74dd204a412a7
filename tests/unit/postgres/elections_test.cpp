// Elections with the row strategies: locks in a table of their own, with what the leader says of itself, and everybody
// who looks is told of each change.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "array_elements.hpp"
#include "rows_fixture.hpp"

namespace dlock::postgres {

namespace {

class PostgresElections : public RowsTest, public testing::WithParamInterface<Strategy> {
 protected:
  PostgresElections() : RowsTest(GetParam(), Space::election) {}

  std::unique_ptr<Attempt> stand(RowClient& who, const std::string& name, const std::string& value) {
    auto attempt = std::make_unique<Attempt>();
    attempt->request = {.name = name,
                        .owner = who.host.new_owner_id(),
                        .holder = "host:1:test",
                        .lease = 30s,
                        .wait = true,
                        .space = Space::election,
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
  EXPECT_EQ(leading->grant->space, Space::election);
  EXPECT_EQ(rows.rows.at("x").holder, "host:1:test\n10.0.0.7:80");
}

TEST_P(PostgresElections, WhoLooksIsToldOfTheGrantAndOfTheEnd) {
  rows.give_to("x", "somebody", 1h);
  rows.free("x");
  int changes = 0;
  const auto watch = client->locks->watch(Space::election, "x", [&changes] { ++changes; });
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
  const auto watch = client->locks->watch(Space::election, "x", [&changes] { ++changes; });
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
  const auto watch = client->locks->watch(Space::election, "x", [] {});
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
