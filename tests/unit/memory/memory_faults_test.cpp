// What becomes of the backend's requests when messages get lost, late or doubled.
#include "backends/memory/memory_faults.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/memory/backend_fixture.hpp"
#include "tests/unit/support/reports.hpp"

namespace dlock::memory {
namespace {

using Fate = Delivery::Fate;
using testing::ElementsAre;
using testing::Field;
using testing::Gt;
using testing::SizeIs;

class MemoryFaultsTest : public BackendTest {
 protected:
  std::unique_ptr<MemoryBackend> a = make("a");
  std::unique_ptr<MemoryBackend> b = make("b");
};

// --- Messages that get lost ------------------------------------------------------------------------------------------

TEST_F(MemoryFaultsTest, ALostRequestIsRepeated) {
  disturb(Operation::enqueue, {.fate = Fate::lost});
  const auto attempt = contend(*a);
  engine.advance(2s);
  EXPECT_THAT(attempt->unreachable_reports, ElementsAre(Field(&Failure::code, errc::ambiguous)));
  heal();
  engine.advance(1s);
  EXPECT_TRUE(attempt->grant);
}

TEST_F(MemoryFaultsTest, ALostReplyIsFoundOutByTheOwnerId) {
  disturb(Operation::enqueue, {.reply_lost = true});
  const auto attempt = contend(*a);
  EXPECT_EQ(residue(), 1U);
  const auto token = store->inspect(LockKind::lock, "lock", engine.clock()).token;
  heal();
  engine.advance(3s);
  ASSERT_TRUE(attempt->grant);
  EXPECT_EQ(attempt->grant->token, token) << "another lease was taken";
}

TEST_F(MemoryFaultsTest, ALostReplyOfATryIsCleanedUp) {
  disturb(Operation::try_acquire, {.reply_lost = true});
  auto attempt = contend(*a, false);
  EXPECT_EQ(residue(), 1U);
  engine.advance(2s);
  EXPECT_TRUE(failed(*attempt, errc::ambiguous));
  attempt->contention.reset();
  engine.run();
  EXPECT_EQ(residue(), 0U);
}

TEST_F(MemoryFaultsTest, ALostReplyOfAWaiterThatGivesUpIsCleanedUp) {
  disturb(Operation::enqueue, {.reply_lost = true});
  auto attempt = contend(*a, true, 1h);
  engine.advance(2s);
  ASSERT_THAT(attempt->unreachable_reports, SizeIs(1));
  EXPECT_EQ(residue(), 1U);
  attempt->contention.reset();  // before it asks again
  heal();
  engine.advance(1s);
  EXPECT_EQ(residue(), 0U);
}

TEST_F(MemoryFaultsTest, ACleanUpGoesOnUntilItIsConfirmed) {
  disturb(Operation::try_acquire, {.reply_lost = true});
  auto attempt = contend(*a, false, 1h);
  engine.advance(2s);
  disturb_everything({.fate = Fate::refused});
  attempt->contention.reset();
  engine.advance(60s);
  EXPECT_EQ(residue(), 1U);
  heal();
  engine.advance(1s);
  EXPECT_EQ(residue(), 0U);
}

TEST_F(MemoryFaultsTest, ACleanUpOfAWaiterOutlastsAnyOutage) {
  const auto holder = contend(*a, true, 24h);
  auto quitter = contend(*b, true, 10ms);
  disturb_everything({.fate = Fate::refused});
  quitter->contention.reset();
  engine.advance(1h);
  EXPECT_EQ(residue(), 2U);
  heal();
  engine.advance(1s);
  EXPECT_EQ(residue(), 1U);
}

TEST_F(MemoryFaultsTest, ALostHandOverIsFoundOutByAskingAgain) {
  const auto holder = contend(*a);
  const auto waiter = contend(*b, true, 1h);
  disturb(Operation::notice, {.fate = Fate::lost});
  EXPECT_EQ(release(*a, *holder->grant), ReleaseOutcome::Status::released);
  EXPECT_FALSE(waiter->grant);
  engine.advance(10s);
  EXPECT_TRUE(waiter->grant);
}

TEST_F(MemoryFaultsTest, AWaiterThatIsNotToldThatItIsFirstAsksInTime) {
  const auto holder = contend(*a, true, 1h);
  const auto second = contend(*a, true, 1s);
  const auto third = contend(*b);
  disturb(Operation::notice, {.fate = Fate::lost});
  EXPECT_EQ(release(*a, *holder->grant), ReleaseOutcome::Status::released);
  engine.advance(10s);
  EXPECT_TRUE(second->grant || third->grant);
  EXPECT_LE(residue(), 2U);
}

TEST_F(MemoryFaultsTest, AnUnansweredRenewalFailsAtTheResponseTimeout) {
  const auto holder = contend(*a);
  disturb(Operation::renew, {.fate = Fate::lost});
  EXPECT_EQ(renew(*a, *holder->grant).status, RenewOutcome::Status::failed);
  heal();
  EXPECT_EQ(renew(*a, *holder->grant).status, RenewOutcome::Status::renewed);
}

TEST_F(MemoryFaultsTest, AnUnansweredReleaseIsReportedAndCarriedOn) {
  const auto holder = contend(*a, true, 1h);
  disturb(Operation::release, {.fate = Fate::lost});
  EXPECT_EQ(release(*a, *holder->grant), ReleaseOutcome::Status::failed);
  EXPECT_EQ(residue(), 1U);
  heal();
  engine.advance(4s);
  EXPECT_EQ(residue(), 0U);
}

TEST_F(MemoryFaultsTest, AQuestionThatIsNotAnsweredIsUnavailable) {
  disturb_everything({.fate = Fate::lost});
  std::vector<std::error_code> answers;
  a->inspect(LockKind::lock, "lock", [&](const Result<LockInfo>& r) { answers.push_back(r.failure().code); });
  a->list(LockKind::lock, [&](const Result<std::vector<LockInfo>>& r) { answers.push_back(r.failure().code); });
  a->break_lock(LockKind::lock, "lock", [&](const Result<bool>& r) { answers.push_back(r.failure().code); });
  engine.advance(2s);
  EXPECT_THAT(answers, ElementsAre(errc::unavailable, errc::unavailable, errc::ambiguous));
}

TEST_F(MemoryFaultsTest, DiagnoseReportsAStoreThatCannotBeReached) {
  std::vector<Finding> findings;
  const auto keep = [&](Result<std::vector<Finding>> r) { findings = std::move(r.value()); };
  a->diagnose(keep);
  engine.run();
  EXPECT_EQ(findings.front().severity, Finding::Severity::ok);
  disturb_everything({.fate = Fate::refused});
  a->diagnose(keep);
  EXPECT_EQ(findings.front().severity, Finding::Severity::error);
}

// --- Messages that are late or come twice ----------------------------------------------------------------------------

TEST_F(MemoryFaultsTest, ASlowReplyShortensTheLeaseNotTheSafety) {
  disturb(Operation::enqueue, {.delay = 500ms, .reply_delay = 500ms});
  const TimePoint sent = engine.now();
  const auto attempt = contend(*a);
  engine.advance(1s);
  ASSERT_TRUE(attempt->grant);
  EXPECT_EQ(attempt->grant->valid_until, lease_valid_until(sent, 30s));
  EXPECT_EQ(store->inspect(LockKind::lock, "lock", engine.clock()).remaining, 29500ms);
}

TEST_F(MemoryFaultsTest, AGrantThatArrivesAfterItsLeaseIsAskedForAgain) {
  disturb(Operation::enqueue, {.reply_delay = 1s});
  const auto attempt = contend(*a, true, 500ms);
  engine.advance(500ms);
  heal();
  engine.advance(500ms);
  ASSERT_TRUE(attempt->grant);
  EXPECT_THAT(attempt->grant->valid_until, Gt(engine.now()));
}

TEST_F(MemoryFaultsTest, AGrantForAnAcquireThatWasGivenUpIsReleased) {
  disturb(Operation::enqueue, {.delay = 1s});
  auto attempt = contend(*a, true, 1h);
  attempt->contention.reset();
  engine.run();
  EXPECT_EQ(residue(), 0U);
  engine.advance(1s);
  EXPECT_EQ(residue(), 0U);
}

TEST_F(MemoryFaultsTest, ARequestThatArrivesAfterItsOwnCleanUpIsCleanedUpToo) {
  disturb(Operation::enqueue, {.delay = 10s});
  auto attempt = contend(*a, true, 1h);
  engine.advance(3s);
  attempt->contention.reset();
  engine.advance(6s);
  EXPECT_EQ(residue(), 0U);
  engine.advance(10s);
  EXPECT_EQ(residue(), 0U) << "a late request took the lock for nobody";
}

// The answer to the clean-up, which was too early, is on its way then.
TEST_F(MemoryFaultsTest, ARequestThatArrivesWhileItsCleanUpIsAnsweredIsCleanedUpToo) {
  int releases = 0;
  faults->script = [&](const Message& message) -> Delivery {
    if (message.operation == Operation::enqueue) return {.delay = 3s};
    if (message.operation == Operation::release) ++releases;
    return {.reply_delay = 1s};
  };
  auto attempt = contend(*a, true, 1h);
  engine.advance(2500ms);
  attempt->contention.reset();
  engine.advance(600ms);
  EXPECT_EQ(residue(), 1U) << "it has arrived";
  engine.advance(500ms);
  EXPECT_EQ(residue(), 0U);
  engine.advance(1min);
  EXPECT_LE(releases, 3) << "it goes on for ever";
}

TEST_F(MemoryFaultsTest, ATryThatArrivesAfterItsOwnCleanUpIsCleanedUpToo) {
  disturb(Operation::try_acquire, {.delay = 10s});
  auto attempt = contend(*a, false, 1h);
  engine.advance(2s);
  attempt->contention.reset();
  engine.advance(8s);
  EXPECT_EQ(residue(), 0U);
}

TEST_F(MemoryFaultsTest, ARequestThatArrivesLongAfterItsCleanUpIsCleanedUpToo) {
  const auto holder = contend(*a, true, 1h);
  disturb(Operation::enqueue, {.fate = Fate::held});
  std::vector<std::unique_ptr<Attempt>> quitters;
  for (int i = 0; i < 5; ++i) quitters.push_back(contend(*b, true, 1s));
  engine.advance(3s);
  quitters.clear();
  engine.advance(1min);
  heal();
  store->faults().resume();
  engine.run();
  EXPECT_EQ(residue(), 1U) << "those who gave up stand in the queue again";
}

TEST_F(MemoryFaultsTest, ARequestThatArrivesAfterTheReleaseOfItsLeaseIsCleanedUpToo) {
  disturb(Operation::enqueue, {.fate = Fate::held});
  const auto attempt = contend(*a, true, 1h);
  engine.advance(2s);
  heal();
  engine.advance(1s);
  ASSERT_TRUE(attempt->grant);
  EXPECT_EQ(release(*a, *attempt->grant), ReleaseOutcome::Status::released);
  store->faults().resume();
  engine.run();
  EXPECT_EQ(residue(), 0U) << "a late request took the lock for nobody";
}

TEST_F(MemoryFaultsTest, ATryThatArrivesAgainAfterTheReleaseOfItsLeaseIsCleanedUpToo) {
  disturb(Operation::try_acquire, {.duplicate = 10s});
  const auto attempt = contend(*a, false, 1h);
  ASSERT_TRUE(attempt->grant);
  attempt->contention.reset();
  EXPECT_EQ(release(*a, *attempt->grant), ReleaseOutcome::Status::released);
  engine.advance(10s);
  EXPECT_EQ(residue(), 0U) << "a late request took the lock for nobody";
}

TEST_F(MemoryFaultsTest, ARequestThatArrivesAgainWhileItsLeaseIsHeldTouchesNothing) {
  disturb(Operation::enqueue, {.fate = Fate::held});
  const auto attempt = contend(*a, true, 1h);
  engine.advance(2s);
  heal();
  engine.advance(1s);
  ASSERT_TRUE(attempt->grant);
  attempt->contention.reset();
  store->faults().resume();
  engine.run();
  EXPECT_EQ(residue(), 1U);
  EXPECT_EQ(renew(*a, *attempt->grant).status, RenewOutcome::Status::renewed);
}

TEST_F(MemoryFaultsTest, NewsOfAGrantThatWasFoundOutByAskingTouchNothing) {
  store->faults().inject(nullptr);
  const auto holder = contend(*a, true, 1s);
  const auto waiter = contend(*b, true, 1h);
  engine.advance(1s);
  ASSERT_TRUE(waiter->grant);
  EXPECT_EQ(residue(), 1U);
  EXPECT_EQ(renew(*b, *waiter->grant).status, RenewOutcome::Status::renewed);
}

TEST_F(MemoryFaultsTest, AnAnswerToAnEarlierTryOfAWaiterTouchesNothing) {
  const auto watching = make("c", Strategy::watch);
  int tries = 0;
  faults->script = [&tries](const Message& message) {
    const bool first = message.operation == Operation::try_acquire && tries++ == 0;
    return first ? Delivery{.reply_delay = 2500ms} : Delivery{.delay = 400ms, .reply_delay = 200ms};
  };
  const auto waiter = contend(*watching, true, 1h);
  engine.advance(10s);
  ASSERT_TRUE(waiter->grant);
  EXPECT_EQ(tries, 2);
  EXPECT_EQ(renew(*watching, *waiter->grant).status, RenewOutcome::Status::renewed);
}

TEST_F(MemoryFaultsTest, AnAnswerToAnEarlierTryOfAHolderTouchesNothing) {
  const auto watching = make("c", Strategy::watch);
  disturb(Operation::try_acquire, {.reply_delay = 3s});
  const auto waiter = contend(*watching, true, 1h);
  engine.advance(2s);
  store->faults().inject(nullptr);
  engine.advance(500ms);
  ASSERT_TRUE(waiter->grant);
  waiter->contention.reset();
  engine.advance(1s);
  EXPECT_EQ(renew(*watching, *waiter->grant).status, RenewOutcome::Status::renewed);
}

TEST_F(MemoryFaultsTest, APlaceInTheQueueThatNobodyWantsIsGivenUpWhenItsTurnComes) {
  const auto holder = contend(*a, true, 1h);
  faults->script = [](const Message& message) {
    if (message.operation != Operation::enqueue) return Delivery{};
    return Delivery{.delay = 1min, .reply_lost = true};
  };
  auto quitter = contend(*b, true, 1s);
  quitter->contention.reset();
  engine.advance(1min);
  EXPECT_EQ(residue(), 2U) << "the late request did not take a place";
  heal();
  EXPECT_EQ(release(*a, *holder->grant), ReleaseOutcome::Status::released);
  engine.run();
  EXPECT_EQ(residue(), 0U) << "the lock was handed to nobody";
}

TEST_F(MemoryFaultsTest, APlaceThatIsTakenDuringACleanUpIsGivenUpHoweverLongThatTakes) {
  disturb(Operation::enqueue, {.fate = Fate::held});
  const auto attempt = contend(*a, true, 10s);
  engine.advance(2s);
  heal();
  engine.advance(1s);
  ASSERT_TRUE(attempt->grant);
  const auto next = contend(*b, true, 1h);
  disturb(Operation::release, {.reply_lost = true});
  EXPECT_EQ(release(*a, *attempt->grant), ReleaseOutcome::Status::failed);
  ASSERT_TRUE(next->grant);
  disturb(Operation::release, {.fate = Fate::refused});
  store->faults().resume();
  engine.advance(1min);
  EXPECT_EQ(residue(), 2U) << "the late request did not take a place";
  heal();
  engine.advance(1s);
  EXPECT_EQ(residue(), 1U);
}

TEST_F(MemoryFaultsTest, WhatMustHaveRunOutIsNotCleanedUpAnyMore) {
  const auto attempt = contend(*a, false, 10s);
  ASSERT_TRUE(attempt->grant);
  int releases = 0;
  faults->script = [&releases](const Message& message) {
    if (message.operation == Operation::release) ++releases;
    return Delivery{.fate = Fate::refused};
  };
  EXPECT_EQ(release(*a, *attempt->grant), ReleaseOutcome::Status::failed);
  engine.advance(10s);
  const int before = releases;
  EXPECT_GE(before, 10);
  engine.advance(1min);
  EXPECT_EQ(releases, before);
}

TEST_F(MemoryFaultsTest, ADuplicatedRequestChangesNothing) {
  disturb_everything({.duplicate = 1s});
  const auto holder = contend(*a);
  const auto waiter = contend(*b);
  ASSERT_TRUE(holder->grant);
  engine.advance(1s);
  EXPECT_EQ(residue(), 2U);
  EXPECT_EQ(release(*a, *holder->grant), ReleaseOutcome::Status::released);
  engine.advance(1s);
  EXPECT_TRUE(waiter->grant) << "the duplicate of a release hit the next holder";
  EXPECT_EQ(residue(), 1U);
}

TEST_F(MemoryFaultsTest, AHandOverThatWasAlreadyFoundOutIsIgnored) {
  const auto holder = contend(*a);
  const auto waiter = contend(*b, true, 1h);
  disturb(Operation::notice, {.delay = 30s});
  EXPECT_EQ(release(*a, *holder->grant), ReleaseOutcome::Status::released);
  engine.advance(10s);
  ASSERT_TRUE(waiter->grant);
  waiter->contention.reset();
  engine.advance(30s);
  EXPECT_EQ(residue(), 1U) << "late news ended a lease";
}

// --- Outages ---------------------------------------------------------------------------------------------------------

TEST_F(MemoryFaultsTest, AWaiterSurvivesAnOutage) {
  disturb_everything({.fate = Fate::refused});
  const auto attempt = contend(*a);
  EXPECT_THAT(attempt->unreachable_reports, ElementsAre(Field(&Failure::code, errc::unavailable)));
  engine.advance(60s);
  EXPECT_THAT(attempt->unreachable_reports, SizeIs(testing::AllOf(Gt(50U), testing::Lt(200U))));
  heal();
  engine.advance(1s);
  EXPECT_TRUE(attempt->grant);
}

TEST_F(MemoryFaultsTest, AnAcquireThatNeverGotThroughLeavesNothingToCleanUp) {
  disturb_everything({.fate = Fate::refused});
  auto attempt = contend(*a);
  attempt->contention.reset();
  EXPECT_EQ(engine.pending_timers(), 0U);
}

TEST_F(MemoryFaultsTest, AHeldRequestArrivesAtResume) {
  disturb_everything({.fate = Fate::held});
  const auto attempt = contend(*a);
  engine.advance(1s);
  EXPECT_FALSE(attempt->grant);
  heal();
  store->faults().resume();
  engine.run();
  EXPECT_TRUE(attempt->grant);
}

TEST_F(MemoryFaultsTest, HeldRequestsOfAClosedClientAreDropped) {
  disturb_everything({.fate = Fate::held});
  auto attempt = contend(*a);
  attempt->contention.reset();
  a.reset();
  heal();
  store->faults().resume();
  EXPECT_EQ(engine.queued(), 0U) << "its engine may be gone";
  engine.run();
  EXPECT_EQ(residue(), 0U);
}

TEST_F(MemoryFaultsTest, HeldNewsArriveAtResumeAndLostOnesNever) {
  for (const Fate fate : {Fate::held, Fate::lost}) {
    const auto holder = contend(*a);
    const auto waiter = contend(*b, true, 1h);
    disturb(Operation::notice, {.fate = fate});
    EXPECT_EQ(release(*a, *holder->grant), ReleaseOutcome::Status::released);
    EXPECT_FALSE(waiter->grant);
    store->faults().resume();
    engine.run();
    EXPECT_EQ(waiter->grant.has_value(), fate == Fate::held);
    heal();
    engine.advance(10s);
    ASSERT_TRUE(waiter->grant) << "it did not find out by asking";
    EXPECT_EQ(release(*b, *waiter->grant), ReleaseOutcome::Status::released);
  }
}

// --- Clients that go -------------------------------------------------------------------------------------------------

TEST_F(MemoryFaultsTest, AClientThatGoesStandsInNoQueueThoughNobodySaidSo) {
  const auto holder = contend(*a, true, 1h);
  const auto waiter = contend(*b, true, 1h);
  EXPECT_EQ(residue(), 2U);
  disturb(Operation::release, {.fate = Fate::lost});
  waiter->contention.reset();
  b.reset();
  EXPECT_EQ(residue(), 1U);
}

TEST_F(MemoryFaultsTest, WhatAKilledClientHadUnderWayReachesNeitherTheStoreNorTheClient) {
  disturb(Operation::enqueue, {.delay = 1s});
  const auto late = contend(*a);
  disturb(Operation::enqueue, {.reply_delay = 1s});
  const auto unanswered = contend(*b);
  EXPECT_EQ(residue(), 1U);
  for (const char* holder : {"host:1:a", "host:1:b"}) store->kill_sessions(holder, engine.clock());
  EXPECT_EQ(residue(), 0U);
  engine.advance(1s);
  EXPECT_EQ(residue(), 0U);
  EXPECT_FALSE(late->grant);
  EXPECT_FALSE(unanswered->grant);
}

}  // namespace
}  // namespace dlock::memory
