// strategy=advisory: those of one client who share a lock. The session has it once, and they are counted.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "advisory_fixture.hpp"

namespace dlock::postgres {

namespace {

using Released = ReleaseOutcome::Status;

class PostgresAdvisorySharing : public PostgresAdvisory {
 protected:
  PostgresAdvisorySharing() {
    table.instead = [this](const FakeQuery& query) { return reply(query); };
  }

  Attempt& read_soon(const std::string& name) { return ask(name, Mode::shared); }
  Attempt& ask(const std::string& name, Mode mode) {
    auto attempt = std::make_unique<Attempt>();
    attempt->request = {.name = name,
                        .owner = host.new_owner_id(),
                        .holder = "me",
                        .lease = options.lease,
                        .kind = LockKind::read_write,
                        .mode = mode};
    attempts.push_back(std::move(attempt));
    Attempt& added = *attempts.back();
    added.contention = locks->contend(added.request, added);
    return added;
  }
  Attempt& read(const std::string& name) {
    Attempt& attempt = read_soon(name);
    engine.run();
    return attempt;
  }
  [[nodiscard]] const AdvisoryStatements& shared() const {
    return table.sql->of(AdvisoryKey::KeySpace::bigint, LockKind::read_write, Mode::shared);
  }
  [[nodiscard]] const Statement& unlock() const {
    return table.sql->of(AdvisoryKey::KeySpace::bigint, LockKind::lock, Mode::shared).unlock;
  }

  bool somebody_waits = false;
  std::string refuses;         // what is refused with 55P03: "try" or "join"
  bool holds_answers = false;  // of tries and joins

 private:
  std::optional<FakeReply> reply(const FakeQuery& query) {
    const bool joins = query.uses(shared().join);
    if (query.uses(unlock())) return FakeReply::of({{"t", elements_of(query.param(0)).front()}});
    if (!joins && !query.uses(shared().try_lock)) return std::nullopt;
    if (holds_answers) return FakeReply::held();
    if (refuses == (joins ? "join" : "try")) return FakeReply::refused("55P03");
    if (somebody_waits) return FakeReply::of({});
    table.last_token += std::stoll(query.param(3));
    return FakeReply::of({{std::to_string(table.last_token), std::to_string(1000 + query.connection)}});
  }
};

TEST_F(PostgresAdvisorySharing, TheSessionHasItOnceAndTheLastOneUnlocksIt) {
  const auto& one = read_soon("a");
  const auto& two = read_soon("a");
  engine.run();
  const auto& three = read("a");
  ASSERT_TRUE(one.grant && two.grant && three.grant);
  EXPECT_EQ(count(shared().try_lock), 1U);
  EXPECT_EQ(count(shared().join), 1U);
  EXPECT_EQ(one.grant->token.value(), 101U);
  EXPECT_EQ(two.grant->token.value(), 102U);
  EXPECT_EQ(three.grant->token.value(), 103U);
  EXPECT_EQ(three.grant->mode, Mode::shared);
  EXPECT_EQ(three.grant->kind, LockKind::read_write);
  EXPECT_EQ(release(two), Released::released);
  EXPECT_EQ(release(one), Released::released);
  EXPECT_EQ(count(unlock()), 0U);
  EXPECT_EQ(release(three), Released::released);
  EXPECT_EQ(count(unlock()), 1U);
  EXPECT_TRUE(read("a").grant);
  EXPECT_EQ(count(shared().try_lock), 2U);
}

// The server would make a writer of the session that reads.
TEST_F(PostgresAdvisorySharing, AWriterIsNotAskedForWhereTheSessionReads) {
  const auto& reading = read("a");
  const auto& writer = ask("a", Mode::exclusive);
  engine.run();
  EXPECT_EQ(writer.busy_reports, 1);
  EXPECT_EQ(server.queries.size(), 1U);
  EXPECT_EQ(release(reading), Released::released);
  (void)ask("a", Mode::exclusive);
  engine.run();
  EXPECT_EQ(server.queries.size(), 3U) << "now the server is asked";
}

TEST_F(PostgresAdvisorySharing, NobodyJoinsWhereSomebodyWaits) {
  const auto& reading = read("a");
  somebody_waits = true;
  const auto& other = read("a");
  EXPECT_EQ(other.busy_reports, 1);
  EXPECT_EQ(release(reading), Released::released);
  EXPECT_EQ(count(unlock()), 1U) << "the other one is not counted";
}

TEST_F(PostgresAdvisorySharing, WhoIsReleasedWhileAnotherJoinsLeavesItTheLock) {
  const auto& reading = read("a");
  holds_answers = true;
  const auto& other = read("a");
  EXPECT_EQ(release(reading), Released::released);
  EXPECT_EQ(count(unlock()), 0U);
  holds_answers = false;
  server.release();
  engine.run();
  ASSERT_TRUE(other.grant);
  EXPECT_EQ(release(other), Released::released);
  EXPECT_EQ(count(unlock()), 1U);
}

TEST_F(PostgresAdvisorySharing, WhoGivesUpIsNotCounted) {
  holds_answers = true;
  auto& one = read_soon("a");
  auto& two = read_soon("a");
  engine.run();
  one.contention.reset();
  holds_answers = false;
  server.release();
  engine.run();
  ASSERT_TRUE(two.grant);
  EXPECT_EQ(release(two), Released::released);
  EXPECT_EQ(count(unlock()), 1U);

  holds_answers = true;
  auto& three = read("a");
  three.contention.reset();
  holds_answers = false;
  server.release();
  engine.run();
  EXPECT_EQ(count(unlock()), 2U) << "nobody is left";
}

// A refusal may come after the grant; but who joins takes no lock.
TEST_F(PostgresAdvisorySharing, WhatIsRefusedIsUnlockedUnlessOthersHaveIt) {
  refuses = "try";
  EXPECT_TRUE(read("a").failure);
  EXPECT_EQ(count(unlock()), 1U);
  refuses.clear();
  const auto& reading = read("a");
  ASSERT_TRUE(reading.grant);
  refuses = "join";
  EXPECT_TRUE(read("a").failure);
  EXPECT_EQ(count(unlock()), 1U);
  EXPECT_EQ(release(reading), Released::released);
  EXPECT_EQ(count(unlock()), 2U);
}

TEST_F(PostgresAdvisorySharing, ALostSessionIsLostByAllOfThem) {
  const auto& one = read("a");
  const auto& two = read("a");
  ASSERT_TRUE(one.grant && two.grant);
  break_connection(1);
  EXPECT_EQ(host.losses.size(), 2U);
  engine.advance(1s);
  EXPECT_TRUE(read("a").grant);
  EXPECT_EQ(count(shared().try_lock), 2U) << "the next session has it anew";
}

}  // namespace

}  // namespace dlock::postgres
