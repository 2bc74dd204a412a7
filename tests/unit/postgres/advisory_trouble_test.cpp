// What goes wrong on the session where locks are tried for and held.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "advisory_fixture.hpp"
#include "tests/simulation/postgres/array_elements.hpp"
#include "tests/unit/support/reports.hpp"

namespace dlock::postgres {

namespace {

using Released = ReleaseOutcome::Status;

class PostgresAdvisoryTrouble : public PostgresAdvisory {
 protected:
  // The next queries of that statement are refused, so many of them; the lock is taken all the same.
  void refuse(const Statement& statement, const std::string& sqlstate, int times = 1) {
    table.instead = [this, &statement, sqlstate, times](const FakeQuery& query) mutable -> std::optional<FakeReply> {
      if (!query.uses(statement) || times == 0) return std::nullopt;
      --times;
      if (query.uses(sql().try_lock) || query.uses(sql().lock_slice)) table.take(query.param(0), query.connection);
      if (query.uses(sql().try_many)) table.take(elements_of(query.param(0)).front(), query.connection);
      return FakeReply::refused(sqlstate);
    };
  }
};

// --- Errors after which the lock may be held -------------------------------------------------------------------------

TEST_F(PostgresAdvisoryTrouble, AnErrorOfATryAlwaysUnlocks) {
  for (const std::string sqlstate : {"57014", "55P03", "53100", "53200", "42501", "22012", "40P01", "40001", "XX000"}) {
    refuse(sql().try_lock, sqlstate);
    const auto& a = try_now("a");
    engine.advance(100ms);
    const std::size_t held = a.grant ? 1 : 0;
    EXPECT_EQ(table.size(), held) << sqlstate;
    EXPECT_TRUE(a.grant || a.failure) << sqlstate;
    EXPECT_EQ(a.busy_reports, 0) << sqlstate;
    EXPECT_FALSE(table.entered_twice) << sqlstate;
    if (a.grant) {
      EXPECT_EQ(release(a), Released::released) << sqlstate;
    }
  }
  EXPECT_TRUE(host.losses.empty());
}

TEST_F(PostgresAdvisoryTrouble, ATryThatWasCancelledOrRolledBackIsTriedAgain) {
  for (const std::string sqlstate : {"57014", "40001", "40P01"}) {
    refuse(sql().try_lock, sqlstate, 2);
    const auto& a = try_now("a");
    engine.advance(200ms);
    ASSERT_TRUE(a.grant) << sqlstate;
    EXPECT_EQ(release(a), Released::released);
  }
}

TEST_F(PostgresAdvisoryTrouble, ATryIsTriedAgainOnlyWithinItsTime) {
  refuse(sql().try_lock, "40001", 1000);
  const auto& a = try_now("a");
  engine.advance(4s);
  ASSERT_TRUE(failed(a, errc::unavailable, "40001"));
  EXPECT_EQ(table.size(), 0U);
}

TEST_F(PostgresAdvisoryTrouble, AWaitGoesOnAfterAnError) {
  for (const std::string sqlstate : {"53200", "55000", "58030", "XX002", "QQ123"}) {
    refuse(sql().try_lock, sqlstate, 3);
    const auto& a = wait_for("a");
    EXPECT_FALSE(a.unreachable_reports.empty()) << sqlstate;
    engine.advance(1s);
    ASSERT_TRUE(a.grant) << sqlstate;
    EXPECT_FALSE(table.entered_twice) << sqlstate;
    EXPECT_EQ(release(a), Released::released) << sqlstate;
  }
}

TEST_F(PostgresAdvisoryTrouble, AnErrorOfABatchUnlocksAllOfItAndAsksEachAlone) {
  (void)try_now("warm up");
  table.holds_tries = true;
  (void)try_soon("x");
  auto& a = try_soon("a");
  auto& b = try_soon("b");
  auto& c = try_soon("c");
  refuse(sql().try_many, "22021");
  table.holds_tries = false;
  server.release();
  engine.run();
  EXPECT_TRUE(a.grant && b.grant && c.grant);
  EXPECT_EQ(count(sql().try_many), 1U);
  EXPECT_EQ(count(sql().unlock_many), 1U);
  EXPECT_EQ(count(sql().try_lock), 5U);
  EXPECT_FALSE(table.entered_twice);
}

TEST_F(PostgresAdvisoryTrouble, WhoeverIsToBlameForABatchIsRefusedAlone) {
  (void)try_now("warm up");
  table.holds_tries = true;
  (void)try_soon("x");
  auto& a = try_soon("a");
  auto& b = try_soon("b");
  table.instead = [&](const FakeQuery& query) -> std::optional<FakeReply> {
    if (query.uses(sql().try_many)) return FakeReply::refused("22021");
    if (query.uses(sql().try_lock) && query.param(1) == "b") return FakeReply::refused("22021");
    return std::nullopt;
  };
  table.holds_tries = false;
  server.release();
  engine.run();
  EXPECT_TRUE(a.grant);
  ASSERT_TRUE(b.failure);
  EXPECT_NE(b.failure->detail.find("22021"), std::string::npos);
}

TEST_F(PostgresAdvisoryTrouble, ARefusedUnlockGivesTheSessionUp) {
  const auto& a = try_now("a");
  const auto& b = try_now("b");
  refuse(sql().unlock, "57014");
  EXPECT_EQ(release(a), Released::failed);
  ASSERT_TRUE(lost(host, b.request.owner));
}

// The server ended it before, and says so only now.
TEST_F(PostgresAdvisoryTrouble, AnUnlockThatAnEndedSessionAnswersCameTooLate) {
  const auto& a = try_now("a");
  table.instead = [this](const FakeQuery& query) -> std::optional<FakeReply> {
    if (!query.uses(sql().unlock)) return std::nullopt;
    return FakeReply::ended();
  };
  EXPECT_EQ(release(a), Released::not_owner);
}

TEST_F(PostgresAdvisoryTrouble, AMissingPermissionIsFinal) {
  refuse(sql().try_lock, "42501");
  const auto& a = wait_for("a");
  ASSERT_TRUE(failed(a, errc::access_denied, "GRANT"));
  engine.advance(10s);
  EXPECT_EQ(count(sql().try_lock), 1U);
}

// --- Tables that somebody else has locked ----------------------------------------------------------------------------

TEST_F(PostgresAdvisoryTrouble, ASessionWithLocksDoesNotLetTheServerKeepItWaitingForLong) {
  (void)try_now("a");
  ASSERT_FALSE(server.queries.empty());
  const Purpose& holder = server.queries.back().purpose;
  EXPECT_GT(holder.lock_patience, 0s);
  // A wait for a row may be one for its turn and one for the transaction, and what is behind it has to wait, too.
  EXPECT_LE(4 * holder.lock_patience, options.lease / 3);
  EXPECT_LE(holder.lock_patience, 250ms);
  table.seize(key("b"));
  (void)wait_for("b");
  EXPECT_EQ(last(sql().lock_slice).purpose.lock_patience, 0s) << "it has no locks to answer for";
}

TEST_F(PostgresAdvisoryTrouble, ATryThatWaitedForTheTokensRowIsUnlockedAndCostsNoOtherLock) {
  const auto& held = try_now("held");
  refuse(sql().try_lock, "55P03");
  const auto& a = try_now("a");
  ASSERT_TRUE(failed(a, errc::unavailable)) << "it is not said that somebody else has the lock";
  EXPECT_EQ(a.busy_reports, 0);
  EXPECT_EQ(last(sql().unlock).param(0), key("a"));
  EXPECT_FALSE(table.held(key("a")));
  EXPECT_TRUE(table.held(key("held")));
  EXPECT_TRUE(host.losses.empty());
  EXPECT_EQ(release(held), Released::released);
}

TEST_F(PostgresAdvisoryTrouble, AWaitForALockWhoseRowIsLockedGoesOn) {
  const auto& held = try_now("held");
  refuse(sql().try_lock, "55P03", 3);
  const auto& a = wait_for("a");
  EXPECT_FALSE(a.grant);
  ASSERT_FALSE(a.unreachable_reports.empty());
  EXPECT_EQ(a.unreachable_reports.front().code, errc::unavailable);
  engine.advance(3s);
  EXPECT_TRUE(a.grant);
  EXPECT_FALSE(table.entered_twice);
  EXPECT_TRUE(host.losses.empty());
  EXPECT_EQ(release(held), Released::released);
}

// Were all of them sent at once, what is heard of the session would be as old as the first of them.
TEST_F(PostgresAdvisoryTrouble, ManyTriesThatAreKeptWaitingOneByOneDoNotCostTheSession) {
  const auto& held = try_now("held");
  int answers = 0;
  table.instead = [&](const FakeQuery& query) -> std::optional<FakeReply> {
    if (!query.uses(sql().try_lock) && !query.uses(sql().try_many)) return std::nullopt;
    if (answers == 0) return FakeReply::held();
    --answers;
    return FakeReply::refused("55P03");
  };
  for (int i = 0; i < 70; ++i) (void)contend("kept/" + std::to_string(i), true);
  const TimePoint start = engine.now();
  while (engine.now() < start + 2 * options.lease) {
    engine.advance(250ms);
    ++answers;
    server.release();
    engine.run();
    ASSERT_TRUE(host.losses.empty()) << "after " << (engine.now() - start) / 1s << " s";
  }
  table.instead = nullptr;
  server.release();
  engine.run();
  EXPECT_EQ(release(held), Released::released);
}

// --- The schema ------------------------------------------------------------------------------------------------------

TEST_F(PostgresAdvisoryTrouble, AMissingSchemaIsMade) {
  refuse(sql().try_lock, "3F000");
  const auto& a = try_now("a");
  EXPECT_TRUE(a.grant);
  EXPECT_EQ(set_ups, 1);
}

TEST_F(PostgresAdvisoryTrouble, AMissingSchemaIsMadeByTheClientThatNeedsIt) {
  struct : common::ConnectionObserver {
    void connected() override {}
    void broken(const Failure& /*why*/) override {}
  } nobody;
  Schema schema(engine, options, dialling);
  Commands commands(engine, options, dialling, schema, nobody);
  common::ConnectionNews news(host, false);
  AdvisoryLocks own(Services{host, options, dialling, commands, news, schema});
  table.instead = [](const FakeQuery& query) -> std::optional<FakeReply> {
    if (query.purpose.word == "locks") return FakeReply::refused("3F000");
    return std::nullopt;
  };
  Attempt attempt;
  attempt.request = {.name = "a", .owner = host.new_owner_id(), .holder = "me", .lease = options.lease, .wait = false};
  attempt.contention = own.contend(attempt.request, attempt);
  engine.run();
  EXPECT_TRUE(std::any_of(server.queries.begin(), server.queries.end(),
                          [](const FakeQuery& query) { return query.purpose.word == "setup"; }));
  attempt.contention.reset();
}

TEST_F(PostgresAdvisoryTrouble, ASchemaThatIsMissingEvenThenIsFinal) {
  refuse(sql().try_lock, "42P01", 100);
  const auto& a = wait_for("a");
  ASSERT_TRUE(a.failure);
  EXPECT_NE(a.failure->detail.find("dlock init"), std::string::npos);
  EXPECT_EQ(set_ups, 1);
}

TEST_F(PostgresAdvisoryTrouble, ASchemaThatGoesMissingDuringAWaitIsMadeAgain) {
  table.seize(key("a"));
  const auto& a = wait_for("a");
  refuse(sql().lock_slice, "42P01");
  server.release();
  engine.run();
  EXPECT_FALSE(a.failure);
  EXPECT_EQ(set_ups, 1);
  table.give_back(key("a"));
  engine.run();
  EXPECT_TRUE(a.grant);
}

TEST_F(PostgresAdvisoryTrouble, ASchemaThatMayNotBeMadeIsFinal) {
  set_up_fails = Failure{errc::access_denied, "run \"dlock init\""};
  refuse(sql().try_lock, "3F000", 100);
  const auto& a = wait_for("a");
  ASSERT_TRUE(failed(a, errc::access_denied));
}

TEST_F(PostgresAdvisoryTrouble, ATryThatEndsWhileTheSchemaIsMadeFailsOnce) {
  set_up_takes = 10s;
  set_up_fails = Failure{errc::unavailable, "the fake server is slow"};
  int tries = 0;
  table.instead = [&](const FakeQuery& query) -> std::optional<FakeReply> {
    if (!query.uses(sql().try_lock)) return std::nullopt;
    return FakeReply::refused(++tries == 1 ? "25006" : "3F000");
  };
  const auto& a = try_now("a");
  engine.advance(dialling.response_timeout);
  EXPECT_EQ(set_ups, 1);
  ASSERT_TRUE(failed(a, errc::unavailable, "standby"));
  engine.advance(20s);
  EXPECT_EQ(tries, 2);
}

TEST_F(PostgresAdvisoryTrouble, WhoGivesUpWhileTheSchemaIsMadeHearsNothing) {
  refuse(sql().try_lock, "3F000");
  auto& a = try_soon("a");
  while (set_ups == 0) ASSERT_TRUE(engine.run_one());
  a.contention.reset();
  engine.run();
  EXPECT_FALSE(a.reported());
  EXPECT_EQ(table.size(), 0U);
}

// --- Sessions that are not ours --------------------------------------------------------------------------------------

TEST_F(PostgresAdvisoryTrouble, BehindAPoolerNoLockIsTaken) {
  server.info.pooled = true;
  const auto& a = try_now("a");
  const auto& b = wait_for("b");
  for (const auto* attempt : {&a, &b}) {
    ASSERT_TRUE(failed(*attempt, errc::unsupported, "pooler=session"));
  }
  EXPECT_TRUE(server.queries.empty());
}

TEST_F(PostgresAdvisoryTrouble, AnAnswerOfAnotherSessionIsNoGrant) {
  const auto& held = try_now("held");
  answer(sql().try_lock, FakeReply::of({{"5", "4711"}}));
  const auto& a = try_now("a");
  EXPECT_FALSE(a.grant);
  ASSERT_TRUE(failed(a, errc::unsupported));
  EXPECT_EQ(last(sql().unlock).param(0), key("a"));
  ASSERT_TRUE(lost(host, held.request.owner));  // the session is given up
}

TEST_F(PostgresAdvisoryTrouble, ASilentSessionThatTheServerWouldNotEndIsWarnedOf) {
  server.info.ends_silent_sessions = false;
  (void)try_now("a");
  ASSERT_EQ(host.warnings.size(), 1U);
  break_connection(1);
  engine.advance(1s);
  EXPECT_TRUE(try_now("b").grant);
  EXPECT_EQ(host.warnings.size(), 1U);
}

TEST_F(PostgresAdvisoryTrouble, AServerThatEndsThemIsNotWarnedOf) {
  server.info.ends_silent_sessions = true;
  (void)try_now("a");
  EXPECT_TRUE(host.warnings.empty());
}

// --- Connections that break ------------------------------------------------------------------------------------------

TEST_F(PostgresAdvisoryTrouble, WithTheSessionAllItsLocksAreLostAtOnce) {
  const auto& a = try_now("a");
  const auto& b = try_now("b");
  break_connection(1);
  EXPECT_EQ(host.losses.size(), 2U);
  for (const auto& loss : host.losses) EXPECT_EQ(loss.why.code, errc::lost);
  EXPECT_EQ(release(a), Released::not_owner);
  EXPECT_EQ(release(b), Released::not_owner);
  using State = ConnectionEvent::State;
  EXPECT_EQ(host.connections, (std::vector{State::connected, State::reconnecting}));
  engine.advance(1s);
  EXPECT_EQ(host.connections.back(), State::connected);
  EXPECT_TRUE(try_now("a").grant);
}

TEST_F(PostgresAdvisoryTrouble, ATryWhoseAnswerIsLostIsAmbiguousAndAWaitBeginsAgain) {
  (void)try_now("warm up");
  table.instead = [&](const FakeQuery& query) -> std::optional<FakeReply> {
    if (query.connection != 1) return std::nullopt;
    return FakeReply::lost();
  };
  auto& a = try_soon("a");
  auto& b = contend("b", true);
  engine.run();
  table.forget(1);
  ASSERT_TRUE(failed(a, errc::ambiguous));
  engine.advance(1s);
  EXPECT_TRUE(b.grant);
  EXPECT_EQ(table.holder(key("b")), 2);
}

TEST_F(PostgresAdvisoryTrouble, AServerThatCannotBeReachedIsUnavailableAndAWaitGoesOn) {
  server.dialling = FakeServer::Dialling::fail;
  const auto& a = try_now("a");
  const auto& b = wait_for("b");
  engine.advance(100ms);
  ASSERT_TRUE(failed(a, errc::unavailable));
  EXPECT_FALSE(b.unreachable_reports.empty());
  engine.advance(10s);
  EXPECT_LT(server.dialled, 40);
  EXPECT_FALSE(b.grant || b.failure || b.busy_reports > 0);
  server.dialling = FakeServer::Dialling::accept;
  engine.advance(3s);
  EXPECT_TRUE(b.grant);
}

TEST_F(PostgresAdvisoryTrouble, WhileTheServerCannotBeReachedNothingIsBusy) {
  server.dialling = FakeServer::Dialling::silence;
  (void)wait_for("a");
  auto& a = try_now("a");
  engine.advance(5s);
  EXPECT_EQ(a.busy_reports, 0);
  EXPECT_TRUE(a.failure);
}

TEST_F(PostgresAdvisoryTrouble, ATryThatRunsOutOfTimeSaysWhatTheTroubleWas) {
  int tries = 0;
  table.instead = [&](const FakeQuery& query) -> std::optional<FakeReply> {
    if (!query.uses(sql().try_lock)) return std::nullopt;
    return ++tries == 1 ? FakeReply::refused("25006") : FakeReply::held();
  };
  const auto& a = try_now("a");
  engine.advance(dialling.response_timeout - 1ms);  // before the core says that nothing came
  ASSERT_TRUE(failed(a, errc::unavailable, "standby"));
  EXPECT_EQ(tries, 2);
}

TEST_F(PostgresAdvisoryTrouble, AWrongPasswordIsFinal) {
  server.dialling = FakeServer::Dialling::refuse_password;
  const auto& a = try_now("a");
  const auto& b = wait_for("b");
  engine.advance(100ms);
  ASSERT_TRUE(a.failure && b.failure);
  EXPECT_EQ(a.failure->code, errc::access_denied);
  EXPECT_EQ(b.failure->code, errc::access_denied);
}

TEST_F(PostgresAdvisoryTrouble, AStandbyIsLeftForAnotherServer) {
  const auto& held = try_now("held");
  refuse(sql().try_lock, "25006");
  const auto& a = try_now("a");
  ASSERT_TRUE(lost(host, held.request.owner));
  table.forget(1);
  engine.advance(1s);
  EXPECT_EQ(server.dialled, 2);
  EXPECT_TRUE(a.grant);
}

// --- A server that does not answer -----------------------------------------------------------------------------------

TEST_F(PostgresAdvisoryTrouble, HeartbeatsKeepTheLocks) {
  const auto& a = try_now("a");
  engine.advance(1min);
  EXPECT_GE(server.heartbeats, 15);
  EXPECT_TRUE(host.losses.empty());
  ASSERT_FALSE(host.extensions.empty());
  EXPECT_EQ(host.extensions.back().first, a.request.owner);
  EXPECT_GT(host.extensions.back().second, engine.now() + 9s);
  EXPECT_LE(host.extensions.back().second, lease_valid_until(engine.now(), options.lease));
}

TEST_F(PostgresAdvisoryTrouble, AReleaseThatIsNotAnsweredFailsInTimeAndGoesOn) {
  const auto& a = try_now("a");
  const auto& other = try_now("other");
  table.holds_unlocks = true;
  release_soon(a);
  engine.advance(4s);
  ASSERT_EQ(released.size(), 1U);
  EXPECT_EQ(released[0].status, Released::failed);
  table.holds_unlocks = false;
  server.release();
  engine.run();
  EXPECT_FALSE(table.held(key("a")));
  EXPECT_TRUE(table.held(key("other")));  // which is none of its business
  EXPECT_TRUE(host.losses.empty());
  EXPECT_EQ(release(other), Released::released);
  EXPECT_EQ(released.size(), 2U);
}

TEST_F(PostgresAdvisoryTrouble, AnUnlockWithoutAnAnswerGivesASessionUpThatHoldsNothing) {
  const auto& a = try_now("a");
  table.holds_unlocks = true;
  release_soon(a);
  engine.advance(4s);
  EXPECT_EQ(released.at(0).status, Released::failed);
  engine.advance(1s);
  EXPECT_EQ(server.dialled, 2);
}

TEST_F(PostgresAdvisoryTrouble, ASilentSessionIsKeptAsLongAsItsLocksAreSafe) {
  const auto& a = try_now("a");
  table.holds_tries = true;
  auto& b = contend("b", true);
  engine.advance(5s);
  EXPECT_EQ(server.dialled, 1);
  EXPECT_TRUE(host.losses.empty());
  EXPECT_FALSE(b.unreachable_reports.empty());
  engine.advance(7s);
  ASSERT_TRUE(lost(host, a.request.owner));
  table.forget(1);
  table.holds_tries = false;
  server.release();
  engine.run();
  EXPECT_TRUE(b.grant);
}

TEST_F(PostgresAdvisoryTrouble, WhoeverWaitsForASilentSessionIsToldMoreThanOnce) {
  ASSERT_TRUE(try_now("a").grant);
  table.holds_tries = true;
  const auto& b = contend("b", true);
  engine.advance(9s);
  EXPECT_EQ(b.unreachable_reports.size(), 2U);
  EXPECT_TRUE(host.losses.empty());
}

TEST_F(PostgresAdvisoryTrouble, ASilentSessionWithoutLocksIsGivenUpInTime) {
  (void)release(try_now("warm up"));
  table.holds_tries = true;
  auto& b = contend("b", true);
  engine.advance(4s);
  table.holds_tries = false;
  engine.advance(2s);
  EXPECT_EQ(server.dialled, 2);
  EXPECT_TRUE(b.grant);
}

TEST_F(PostgresAdvisoryTrouble, ALockWhoseLeaseRanOutWhileWeSleptIsLostAndUnlocked) {
  const auto& a = try_now("a");
  engine.sleep_through(13s);  // and the server has not ended the session
  engine.advance(5s);
  ASSERT_TRUE(lost(host, a.request.owner));
  EXPECT_FALSE(table.held(key("a")));
  EXPECT_EQ(release(a), Released::not_owner);
}

TEST_F(PostgresAdvisoryTrouble, AnAnswerThatComesAfterTheDeadlineOfItsCallerIsUnlocked) {
  const auto& held = try_now("held");
  table.holds_tries = true;
  auto& a = try_soon("a");
  engine.advance(4s);
  a.contention.reset();  // as the core does
  table.holds_tries = false;
  server.release();
  engine.run();
  EXPECT_FALSE(table.held(key("a")));
  EXPECT_TRUE(table.held(key("held")));
  EXPECT_TRUE(host.losses.empty());
  EXPECT_EQ(release(held), Released::released);
}

}  // namespace

}  // namespace dlock::postgres
