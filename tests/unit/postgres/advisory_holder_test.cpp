// Tries, the locks that they get, and their release, all over one session.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include "advisory_fixture.hpp"
#include "tests/unit/support/reports.hpp"

namespace dlock::postgres {

namespace {

using Released = ReleaseOutcome::Status;

class PostgresAdvisoryHolder : public PostgresAdvisory {};

// --- Acquire and release ---------------------------------------------------------------------------------------------

TEST_F(PostgresAdvisoryHolder, TakesAFreeLockInOneRoundTrip) {
  const TimePoint asked = engine.now();
  const auto& a = try_now("a");
  ASSERT_TRUE(a.grant);
  EXPECT_EQ(a.grant->token.value(), 101U);
  EXPECT_EQ(a.grant->owner, a.request.owner);
  EXPECT_EQ(a.grant->valid_until, lease_valid_until(asked, options.lease));
  EXPECT_EQ(server.queries.size(), 1U);
  EXPECT_EQ(server.queries[0].param(0), key("a"));
  EXPECT_EQ(server.queries[0].param(1), "a");
  EXPECT_EQ(server.queries[0].param(2), "me");
  EXPECT_EQ(server.queries[0].purpose.word, "locks");
  EXPECT_EQ(server.queries[0].purpose.session_lease, options.lease);
  EXPECT_EQ(release(a), Released::released);
  EXPECT_EQ(server.queries.size(), 2U);
  EXPECT_FALSE(table.held(key("a")));
}

// --- Whether the server's locks are any ------------------------------------------------------------------------------

TEST_F(PostgresAdvisoryHolder, TheFirstGrantOfASessionIsProvenInTheSameRoundTrip) {
  EXPECT_TRUE(try_now("a").grant);
  EXPECT_EQ(table.proofs, 1);
  EXPECT_TRUE(try_now("c").grant);
  EXPECT_EQ(table.proofs, 1);
  server.break_connections();
  engine.advance(1s);
  EXPECT_TRUE(try_now("d").grant);
  EXPECT_EQ(table.proofs, 2);
}

TEST_F(PostgresAdvisoryHolder, AGrantOfWhichTheServerKnowsNothingIsRefused) {
  table.proof = FakeReply::of({{"1001", "f"}});
  for (const bool wait : {false, true}) {
    auto& a = contend("a", wait);
    engine.run();
    ASSERT_TRUE(failed(a, errc::unsupported, "pg_locks does not show it"));
    table.proof = FakeReply::of({{"1002", "f"}});
    engine.advance(1s);
    EXPECT_FALSE(table.held(key("a")));
  }
  EXPECT_EQ(try_now("b").failure->code, errc::unsupported) << "each session is asked";
}

TEST_F(PostgresAdvisoryHolder, AProofByADifferentSessionIsRefused) {
  table.proof = FakeReply::of({{"9", "t"}});
  EXPECT_TRUE(failed(try_now("a"), errc::unsupported, "a different session answered"));
}

TEST_F(PostgresAdvisoryHolder, AProofThatDoesNotComeIsNoGrant) {
  table.proof = FakeReply::lost();
  ASSERT_TRUE(failed(try_now("a"), errc::ambiguous));
  table.forget(1);
  table.proof = FakeReply::refused("57014");
  engine.advance(1s);
  const auto& a = contend("a", true);
  engine.advance(1s);
  EXPECT_FALSE(a.grant);
  table.proof.reset();
  engine.advance(5s);
  EXPECT_TRUE(a.grant);
}

TEST_F(PostgresAdvisoryHolder, WhereItMayNotBeProvenItIsSaidOnce) {
  table.proof = FakeReply::refused("42501");
  EXPECT_TRUE(try_now("a").grant);
  EXPECT_TRUE(try_now("b").grant);
  server.break_connections();
  engine.advance(1s);
  EXPECT_TRUE(try_now("c").grant);
  EXPECT_EQ(std::count_if(host.warnings.begin(), host.warnings.end(),
                          [](const auto& warning) {
                            return warning.reason.detail.find("cannot be checked") != std::string::npos;
                          }),
            1);
}

TEST_F(PostgresAdvisoryHolder, ALeaseCountsFromWhenItsRequestWasSent) {
  ASSERT_EQ(release(try_now("a")), Released::released);
  table.holds_tries = true;
  const auto& b = try_soon("b");
  engine.run();
  const TimePoint sent = engine.now();
  engine.advance(300ms);
  table.holds_tries = false;
  server.release();
  engine.run();
  ASSERT_TRUE(b.grant);
  EXPECT_EQ(b.grant->valid_until, lease_valid_until(sent, options.lease));
}

TEST_F(PostgresAdvisoryHolder, ATryOfALockThatSomebodyElseHasIsBusy) {
  table.seize(key("a"));
  const auto& a = try_now("a");
  EXPECT_EQ(a.busy_reports, 1);
  EXPECT_FALSE(a.grant || a.failure);
}

TEST_F(PostgresAdvisoryHolder, ALockThatTheSessionHasIsBusyWithoutAsking) {
  const auto& a = try_now("a");
  const auto& again = try_now("a");
  EXPECT_TRUE(a.grant);
  EXPECT_EQ(again.busy_reports, 1);
  EXPECT_EQ(server.queries.size(), 1U);
  EXPECT_FALSE(table.entered_twice);
}

TEST_F(PostgresAdvisoryHolder, ALockThatTheSessionHasIsBusyHoweverSlowTheServerIs) {
  ASSERT_TRUE(try_now("a").grant);
  table.holds_tries = true;
  (void)try_now("b");
  EXPECT_EQ(try_now("a").busy_reports, 1);
}

TEST_F(PostgresAdvisoryHolder, ANameWithTheKeyOfAnotherIsBusy) {
  options.key = *parse_key_scheme("int64:7");
  start();
  const auto& a = try_now("a");
  const auto& b = try_now("b");
  EXPECT_TRUE(a.grant);
  EXPECT_EQ(b.busy_reports, 1);
  EXPECT_FALSE(table.entered_twice);
}

TEST_F(PostgresAdvisoryHolder, OfTwoTriesAtATimeOneIsSentAndOneIsGranted) {
  const auto& first = try_soon("a");
  const auto& second = try_soon("a");
  engine.run();
  EXPECT_TRUE(first.grant);
  EXPECT_EQ(second.busy_reports, 1);
  EXPECT_FALSE(table.entered_twice);
}

TEST_F(PostgresAdvisoryHolder, AllWhoAskAtATimeAreToldThatALockIsBusy) {
  table.seize(key("a"));
  for (int i = 0; i < 3; ++i) (void)try_soon("a");
  engine.run();
  EXPECT_EQ(count(sql().try_lock), 1U);
  for (const auto& attempt : attempts) EXPECT_EQ(attempt->busy_reports, 1);
}

TEST_F(PostgresAdvisoryHolder, ALockThatWasBusyIsBusyOnlyForThoseWhoHadAskedByThen) {
  (void)try_now("warm up");
  table.seize(key("a"));
  auto& first = try_soon("a");
  // The answer is under way when the lock gets free and somebody else asks.
  table.give_back(key("a"));
  auto& second = try_soon("a");
  engine.run();
  EXPECT_EQ(first.busy_reports, 1);
  EXPECT_TRUE(second.grant);
}

TEST_F(PostgresAdvisoryHolder, ATryGoesBehindTheUnlockOfTheSameLock) {
  const auto& a = try_now("a");
  release_soon(a);
  const auto& again = try_soon("a");
  engine.run();
  EXPECT_TRUE(again.grant);
  EXPECT_GT(again.grant->token, a.grant->token);
  EXPECT_FALSE(table.entered_twice);
  ASSERT_EQ(server.queries.size(), 3U);
  EXPECT_TRUE(server.queries[1].uses(sql().unlock));
  EXPECT_TRUE(server.queries[2].uses(sql().try_lock));
}

TEST_F(PostgresAdvisoryHolder, AnUnlockThatWaitsGoesBeforeATryOfTheSameLock) {
  const auto& a = try_now("a");
  const auto& b = try_now("b");
  table.holds_unlocks = true;
  release_soon(a);
  release_soon(b);  // behind the other, and not sent yet
  EXPECT_EQ(count(sql().unlock), 1U);
  const auto& again = try_soon("b");
  EXPECT_EQ(count(sql().unlock), 2U);
  EXPECT_EQ(count(sql().try_lock), 3U);
  EXPECT_TRUE(server.queries.back().uses(sql().try_lock));
  table.holds_unlocks = false;
  server.release();
  engine.run();
  EXPECT_EQ(released.size(), 2U);
  // Decided by the fake when it came in, before the unlock was let through.
  EXPECT_TRUE(again.grant || again.busy_reports == 1);
}

TEST_F(PostgresAdvisoryHolder, WhatIsAskedWhileAQueryIsUnderWayGoesOutTogether) {
  (void)try_now("warm up");
  table.holds_tries = true;
  const auto& a = try_soon("a");
  table.seize(key("c"));
  const auto& b = try_soon("b");
  const auto& c = try_soon("c");
  const auto& d = try_soon("d");
  engine.run();
  EXPECT_EQ(server.queries.size(), 2U);
  table.holds_tries = false;
  server.release();
  engine.run();
  EXPECT_EQ(server.queries.size(), 3U);
  EXPECT_EQ(count(sql().try_many), 1U);
  EXPECT_TRUE(a.grant && b.grant && d.grant);
  EXPECT_EQ(c.busy_reports, 1);
  EXPECT_NE(b.grant->token, d.grant->token);
  table.holds_unlocks = true;
  release_soon(a);
  release_soon(b);
  release_soon(d);
  engine.run();
  table.holds_unlocks = false;
  server.release();
  engine.run();
  EXPECT_EQ(count(sql().unlock), 2U);
  ASSERT_EQ(released.size(), 3U);
  for (const auto& outcome : released) EXPECT_EQ(outcome.status, Released::released);
  EXPECT_EQ(table.size(), 2U);  // the first one, and the other client's
}

TEST_F(PostgresAdvisoryHolder, AnUnlockOfWhatWasNotHeldIsNotOwner) {
  const auto& a = try_now("a");
  table.forget(1);
  EXPECT_EQ(release(a), Released::not_owner);
  EXPECT_TRUE(host.losses.empty());
}

TEST_F(PostgresAdvisoryHolder, AReleaseOfAnUnknownOwnerIsNotOwner) {
  const auto& a = try_now("a");
  Grant other = *a.grant;
  other.owner = host.new_owner_id();
  locks->release(other, [this](const ReleaseOutcome& outcome) { released.push_back(outcome); });
  EXPECT_EQ(released.back().status, Released::not_owner);
  EXPECT_TRUE(table.held(key("a")));
}

TEST_F(PostgresAdvisoryHolder, ALeaseLongerThanTheSessionsIsRefused) {
  auto attempt = std::make_unique<Attempt>();
  attempt->request = {.name = "a", .owner = host.new_owner_id(), .holder = "me", .lease = 13s};
  attempt->contention = locks->contend(attempt->request, *attempt);
  ASSERT_TRUE(failed(*attempt, errc::invalid_argument, "lease"));
  EXPECT_NE(attempt->failure->detail.find("URL"), std::string::npos);
}

// --- Those who give up -----------------------------------------------------------------------------------------------

TEST_F(PostgresAdvisoryHolder, WhatIsGrantedToNobodyIsUnlocked) {
  (void)try_now("warm up");
  auto& a = try_soon("a");
  EXPECT_EQ(count(sql().try_lock), 2U);
  a.contention.reset();
  engine.run();
  EXPECT_FALSE(a.grant);
  EXPECT_FALSE(table.held(key("a")));
}

// The server has granted both; whoever is told first ends the other.
TEST_F(PostgresAdvisoryHolder, WhatIsGrantedToWhoGivesUpBeforeHearingOfItIsUnlocked) {
  auto& a = try_soon("a");
  auto& b = try_soon("b");
  a.when_granted = [&] { b.contention.reset(); };
  b.when_granted = [&] { a.contention.reset(); };
  engine.run();
  ASSERT_NE(a.grant.has_value(), b.grant.has_value());
  EXPECT_EQ(table.held(key("a")), a.grant.has_value());
  EXPECT_EQ(table.held(key("b")), b.grant.has_value());
}

TEST_F(PostgresAdvisoryHolder, WhatWasNotSentWhenItsCallerGaveUpIsNeverSent) {
  auto& a = try_soon("a");
  a.contention.reset();
  engine.run();
  EXPECT_TRUE(server.queries.empty());
}

TEST_F(PostgresAdvisoryHolder, OneWhoAskedAfterThemGetsWhatIsGrantedToNobody) {
  (void)try_now("warm up");
  table.holds_tries = true;
  (void)try_soon("x");
  auto& gives_up = try_soon("a");
  auto& follows = try_soon("a");
  auto& gives_up_too = try_soon("a");
  table.holds_tries = false;
  table.instead = [&](const FakeQuery& query) -> std::optional<FakeReply> {
    if (query.uses(sql().try_lock) && query.param(1) == "a") return FakeReply::held();
    return std::nullopt;
  };
  server.release();
  engine.run();
  ASSERT_EQ(count(sql().try_lock), 3U);  // that of "a" is under way
  gives_up.contention.reset();
  gives_up_too.contention.reset();
  table.instead = nullptr;
  server.release();
  engine.run();
  EXPECT_TRUE(follows.grant);
  EXPECT_FALSE(table.entered_twice);
  EXPECT_EQ(release(follows), Released::released);
  EXPECT_FALSE(table.held(key("a")));
}

// --- Limits ----------------------------------------------------------------------------------------------------------

TEST_F(PostgresAdvisoryHolder, HoldsOnlySoManyLocksAndSaysSo) {
  start({.advisory_locks = 4});  // two of which may be on connections of the pool
  const auto& a = try_now("a");
  const auto& b = try_now("b");
  const auto& c = try_now("c");
  EXPECT_TRUE(a.grant && b.grant);
  ASSERT_TRUE(failed(c, errc::unavailable, "advisory locks"));
  EXPECT_EQ(release(a), Released::released);
  EXPECT_TRUE(try_now("c").grant);
}

TEST_F(PostgresAdvisoryHolder, ABatchDoesNotGoOverTheLimit) {
  start({.advisory_locks = 4});
  const auto& a = try_soon("a");
  const auto& b = try_soon("b");
  const auto& c = try_soon("c");
  engine.run();
  EXPECT_TRUE(a.grant && b.grant);
  EXPECT_TRUE(c.failure);
  EXPECT_EQ(table.size(), 2U);
}

// --- Close -----------------------------------------------------------------------------------------------------------

TEST_F(PostgresAdvisoryHolder, CloseWaitsForWhatHasToBeUnlocked) {
  (void)try_now("warm up");
  auto& a = try_soon("a");
  a.contention.reset();
  release_soon(*attempts[0]);
  bool closed = false;
  locks->close([&] { closed = true; });
  EXPECT_FALSE(closed);
  engine.run();
  EXPECT_TRUE(closed);
  EXPECT_EQ(table.size(), 0U);
}

TEST_F(PostgresAdvisoryHolder, CloseOfAnUnusedClientIsDoneAtOnce) {
  bool closed = false;
  locks->close([&] { closed = true; });
  EXPECT_TRUE(closed);
  EXPECT_EQ(server.dialled, 0);
}

TEST_F(PostgresAdvisoryHolder, NothingIsCalledAfterDestruction) {
  const auto& a = try_now("a");
  auto& b = try_soon("b");
  auto& c = try_soon("c");
  release_soon(a);
  b.contention.reset();
  c.contention.reset();
  locks.reset();
  engine.advance(1min);
  EXPECT_TRUE(released.empty());
}

TEST_F(PostgresAdvisoryHolder, HeartbeatsKeepTheShortestLease) {
  options.lease = locks->capabilities().min_lease;
  start();
  ASSERT_TRUE(try_now("a").grant);
  for (int i = 0; i < 200; ++i) engine.advance(options.lease / 20);
  EXPECT_TRUE(host.losses.empty());
}

TEST_F(PostgresAdvisoryHolder, SaysWhatItCanDo) {
  const Capabilities can = locks->capabilities();
  EXPECT_EQ(can.backend, "postgresql");
  EXPECT_EQ(can.strategy, "advisory");
  EXPECT_EQ(can.lease_kind, LeaseKind::session);
  EXPECT_TRUE(can.fair && can.wakes_waiters && can.wakes_one && can.counts_waiters);
  EXPECT_TRUE(can.can_inspect && can.can_list && can.can_break && can.can_forget && can.can_forget_idle);
  EXPECT_EQ(can.max_lease, options.lease);
}

}  // namespace

}  // namespace dlock::postgres
