#include "backends/memory/memory_backend.hpp"

#include <gmock/gmock.h>

#include <thread>

#include <dlock/client.hpp>

#include "tests/unit/memory/backend_fixture.hpp"

namespace dlock::memory {
namespace {

using Fate = Delivery::Fate;
using testing::ElementsAre;
using testing::Gt;
using testing::SizeIs;

class MemoryBackendTest : public BackendTest {
 protected:
  std::unique_ptr<MemoryBackend> a = make("a");
  std::unique_ptr<MemoryBackend> b = make("b");
};

// --- Undisturbed -----------------------------------------------------------------------------------------------------

TEST_F(MemoryBackendTest, GrantsInsideTheCallWhenNothingIsDisturbed) {
  store->faults().inject(nullptr);
  Attempt attempt;
  const LockRequest request{.name = "lock", .owner = OwnerId(1, 1), .holder = "h", .lease = 30s, .wait = true};
  attempt.contention = a->contend(request, attempt);
  ASSERT_TRUE(attempt.grant);
  EXPECT_EQ(attempt.grant->valid_until, lease_valid_until(engine.now(), 30s));
  EXPECT_EQ(engine.pending_timers(), 0U);
}

TEST_F(MemoryBackendTest, ATryIsToldThatTheLockIsBusyAndLeavesNothing) {
  const auto holder = contend(*a);
  const auto attempt = contend(*b, false);
  EXPECT_EQ(attempt->busy_reports, 1);
  EXPECT_FALSE(attempt->grant);
  EXPECT_EQ(residue(), 1U);
}

TEST_F(MemoryBackendTest, AReleaseHandsOverToAnotherClientAtOnce) {
  const auto holder = contend(*a);
  const auto waiter = contend(*b);
  EXPECT_FALSE(waiter->grant);
  engine.advance(10s);
  EXPECT_EQ(release(*a, *holder->grant), ReleaseOutcome::Status::released);
  ASSERT_TRUE(waiter->grant);
  EXPECT_GT(waiter->grant->token, holder->grant->token);
  EXPECT_EQ(waiter->grant->valid_until, lease_valid_until(engine.now(), 30s));
}

TEST_F(MemoryBackendTest, TheFirstInLineNoticesTheEndOfALease) {
  const auto holder = contend(*a, true, 30s);
  const auto waiter = contend(*b);
  engine.advance(30s - 1ns);
  EXPECT_FALSE(waiter->grant);
  engine.advance(1ns);
  EXPECT_TRUE(waiter->grant);
  EXPECT_EQ(renew(*a, *holder->grant).status, RenewOutcome::Status::lost);
  EXPECT_EQ(release(*a, *holder->grant), ReleaseOutcome::Status::not_owner);
}

TEST_F(MemoryBackendTest, TheNextInLineNoticesTheEndOfAShorterLease) {
  const auto holder = contend(*a, true, 1h);
  const auto second = contend(*a, true, 1s);
  const auto third = contend(*b);
  EXPECT_EQ(release(*a, *holder->grant), ReleaseOutcome::Status::released);
  ASSERT_TRUE(second->grant);
  engine.advance(1s);
  EXPECT_TRUE(third->grant);
}

TEST_F(MemoryBackendTest, ARenewalMovesTheEndOfTheLease) {
  const auto holder = contend(*a, true, 30s);
  const auto waiter = contend(*b);
  engine.advance(20s);
  const auto outcome = renew(*a, *holder->grant);
  EXPECT_EQ(outcome.status, RenewOutcome::Status::renewed);
  EXPECT_EQ(outcome.valid_until, lease_valid_until(engine.now(), 30s));
  engine.advance(29s);
  EXPECT_FALSE(waiter->grant);
  engine.advance(1s);
  EXPECT_TRUE(waiter->grant);
}

TEST_F(MemoryBackendTest, AWaiterThatGivesUpLeavesTheQueue) {
  const auto holder = contend(*a);
  const auto quitter = contend(*b);
  const auto waiter = contend(*b);
  EXPECT_EQ(residue(), 3U);
  quitter->contention.reset();
  EXPECT_EQ(residue(), 2U);
  EXPECT_EQ(release(*a, *holder->grant), ReleaseOutcome::Status::released);
  EXPECT_TRUE(waiter->grant);
}

TEST_F(MemoryBackendTest, AWaiterThatGivesUpJustAfterTheHandOverPassesTheLockOn) {
  const auto holder = contend(*a);
  const auto quitter = contend(*b);
  const auto waiter = contend(*b);
  a->release(*holder->grant, [](const ReleaseOutcome&) {});
  quitter->contention.reset();  // before it could be told
  engine.run();
  EXPECT_TRUE(waiter->grant);
  EXPECT_EQ(residue(), 1U);
}

TEST_F(MemoryBackendTest, AClientThatGoesLeavesNoWaiter) {
  const auto holder = contend(*a);
  auto waiter = contend(*b);
  waiter->contention.reset();
  b.reset();
  EXPECT_EQ(release(*a, *holder->grant), ReleaseOutcome::Status::released);
  engine.run();
  EXPECT_EQ(residue(), 0U);
}

// --- Messages that get lost ------------------------------------------------------------------------------------------

TEST_F(MemoryBackendTest, ALostRequestIsRepeated) {
  disturb(Operation::enqueue, {.fate = Fate::lost});
  const auto attempt = contend(*a);
  engine.advance(2s);
  EXPECT_THAT(attempt->unreachable_reports, ElementsAre(errc::ambiguous));
  heal();
  engine.advance(1s);
  EXPECT_TRUE(attempt->grant);
}

TEST_F(MemoryBackendTest, ALostReplyIsFoundOutByTheOwnerId) {
  disturb(Operation::enqueue, {.reply_lost = true});
  const auto attempt = contend(*a);
  EXPECT_EQ(residue(), 1U);
  const auto token = store->inspect("lock", engine.clock()).token;
  heal();
  engine.advance(3s);
  ASSERT_TRUE(attempt->grant);
  EXPECT_EQ(attempt->grant->token, token) << "another lease was taken";
}

TEST_F(MemoryBackendTest, ALostReplyOfATryIsCleanedUp) {
  disturb(Operation::try_acquire, {.reply_lost = true});
  auto attempt = contend(*a, false);
  EXPECT_EQ(residue(), 1U);
  engine.advance(2s);
  EXPECT_EQ(attempt->failure, errc::ambiguous);
  attempt->contention.reset();
  engine.run();
  EXPECT_EQ(residue(), 0U);
}

TEST_F(MemoryBackendTest, ACleanUpGoesOnUntilItIsConfirmed) {
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

TEST_F(MemoryBackendTest, ACleanUpOfAWaiterOutlastsAnyOutage) {
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

TEST_F(MemoryBackendTest, ALostHandOverIsFoundOutByAskingAgain) {
  const auto holder = contend(*a);
  const auto waiter = contend(*b, true, 1h);
  disturb(Operation::notice, {.fate = Fate::lost});
  EXPECT_EQ(release(*a, *holder->grant), ReleaseOutcome::Status::released);
  EXPECT_FALSE(waiter->grant);
  engine.advance(10s);
  EXPECT_TRUE(waiter->grant);
}

TEST_F(MemoryBackendTest, AWaiterThatIsNotToldThatItIsFirstAsksInTime) {
  const auto holder = contend(*a, true, 1h);
  const auto second = contend(*a, true, 1s);
  const auto third = contend(*b);
  disturb(Operation::notice, {.fate = Fate::lost});
  EXPECT_EQ(release(*a, *holder->grant), ReleaseOutcome::Status::released);
  engine.advance(10s);
  EXPECT_TRUE(second->grant || third->grant);
  EXPECT_LE(residue(), 2U);
}

TEST_F(MemoryBackendTest, AnUnansweredRenewalFailsAtTheResponseTimeout) {
  const auto holder = contend(*a);
  disturb(Operation::renew, {.fate = Fate::lost});
  EXPECT_EQ(renew(*a, *holder->grant).status, RenewOutcome::Status::failed);
  heal();
  EXPECT_EQ(renew(*a, *holder->grant).status, RenewOutcome::Status::renewed);
}

TEST_F(MemoryBackendTest, AnUnansweredReleaseIsReportedAndCarriedOn) {
  const auto holder = contend(*a, true, 1h);
  disturb(Operation::release, {.fate = Fate::lost});
  EXPECT_EQ(release(*a, *holder->grant), ReleaseOutcome::Status::failed);
  EXPECT_EQ(residue(), 1U);
  heal();
  engine.advance(4s);
  EXPECT_EQ(residue(), 0U);
}

TEST_F(MemoryBackendTest, AQuestionThatIsNotAnsweredIsUnavailable) {
  disturb_everything({.fate = Fate::lost});
  std::vector<std::error_code> answers;
  a->inspect("lock", [&](const Result<LockInfo>& r) { answers.push_back(r.failure().code); });
  a->list([&](const Result<std::vector<LockInfo>>& r) { answers.push_back(r.failure().code); });
  a->break_lock("lock", [&](const Result<bool>& r) { answers.push_back(r.failure().code); });
  engine.advance(2s);
  EXPECT_THAT(answers, ElementsAre(errc::unavailable, errc::unavailable, errc::ambiguous));
}

TEST_F(MemoryBackendTest, DiagnoseReportsAStoreThatCannotBeReached) {
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

TEST_F(MemoryBackendTest, ASlowReplyShortensTheLeaseNotTheSafety) {
  disturb(Operation::enqueue, {.delay = 500ms, .reply_delay = 500ms});
  const TimePoint sent = engine.now();
  const auto attempt = contend(*a);
  engine.advance(1s);
  ASSERT_TRUE(attempt->grant);
  EXPECT_EQ(attempt->grant->valid_until, lease_valid_until(sent, 30s));
  EXPECT_EQ(store->inspect("lock", engine.clock()).remaining, 29500ms);
}

TEST_F(MemoryBackendTest, AGrantThatArrivesAfterItsLeaseIsAskedForAgain) {
  disturb(Operation::enqueue, {.reply_delay = 1s});
  const auto attempt = contend(*a, true, 500ms);
  engine.advance(500ms);
  heal();
  engine.advance(500ms);
  ASSERT_TRUE(attempt->grant);
  EXPECT_THAT(attempt->grant->valid_until, Gt(engine.now()));
}

TEST_F(MemoryBackendTest, AGrantForAnAcquireThatWasGivenUpIsReleased) {
  disturb(Operation::enqueue, {.delay = 1s});
  auto attempt = contend(*a, true, 1h);
  attempt->contention.reset();
  engine.run();
  EXPECT_EQ(residue(), 0U);
  engine.advance(1s);
  EXPECT_EQ(residue(), 0U);
}

TEST_F(MemoryBackendTest, ARequestThatArrivesAfterItsOwnCleanUpIsCleanedUpToo) {
  disturb(Operation::enqueue, {.delay = 10s});
  auto attempt = contend(*a, true, 1h);
  engine.advance(3s);
  attempt->contention.reset();
  engine.advance(6s);
  EXPECT_EQ(residue(), 0U);
  engine.advance(10s);
  EXPECT_EQ(residue(), 0U) << "a late request took the lock for nobody";
}

TEST_F(MemoryBackendTest, ATryThatArrivesAfterItsOwnCleanUpIsCleanedUpToo) {
  disturb(Operation::try_acquire, {.delay = 10s});
  auto attempt = contend(*a, false, 1h);
  engine.advance(2s);
  attempt->contention.reset();
  engine.advance(8s);
  EXPECT_EQ(residue(), 0U);
}

TEST_F(MemoryBackendTest, ADuplicatedRequestChangesNothing) {
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

TEST_F(MemoryBackendTest, AHandOverThatWasAlreadyFoundOutIsIgnored) {
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

TEST_F(MemoryBackendTest, AWaiterSurvivesAnOutage) {
  disturb_everything({.fate = Fate::refused});
  const auto attempt = contend(*a);
  EXPECT_THAT(attempt->unreachable_reports, ElementsAre(errc::unavailable));
  engine.advance(60s);
  EXPECT_THAT(attempt->unreachable_reports, SizeIs(testing::AllOf(Gt(50U), testing::Lt(200U))));
  heal();
  engine.advance(1s);
  EXPECT_TRUE(attempt->grant);
}

TEST_F(MemoryBackendTest, AnAcquireThatNeverGotThroughLeavesNothingToCleanUp) {
  disturb_everything({.fate = Fate::refused});
  auto attempt = contend(*a);
  attempt->contention.reset();
  EXPECT_EQ(engine.pending_timers(), 0U);
}

TEST_F(MemoryBackendTest, AHeldRequestArrivesAtResume) {
  disturb_everything({.fate = Fate::held});
  const auto attempt = contend(*a);
  engine.advance(1s);
  EXPECT_FALSE(attempt->grant);
  heal();
  store->faults().resume();
  engine.run();
  EXPECT_TRUE(attempt->grant);
}

TEST_F(MemoryBackendTest, HeldRequestsOfAClosedClientAreDropped) {
  disturb_everything({.fate = Fate::held});
  auto attempt = contend(*a);
  attempt->contention.reset();
  a.reset();
  heal();
  store->faults().resume();
  engine.run();
  EXPECT_EQ(residue(), 0U);
}

// --- Killed from outside ---------------------------------------------------------------------------------------------

TEST_F(MemoryBackendTest, ABrokenLockIsFoundLostByTheRenewal) {
  const auto holder = contend(*a);
  EXPECT_TRUE(store->break_lock("lock", engine.clock()));
  EXPECT_EQ(renew(*a, *holder->grant).status, RenewOutcome::Status::lost);
  EXPECT_EQ(release(*a, *holder->grant), ReleaseOutcome::Status::not_owner);
}

TEST_F(MemoryBackendTest, NothingOfAKilledSessionArrives) {
  store->faults().inject(nullptr);
  const auto holder = contend(*a);
  const auto waiter = contend(*b);
  store->kill_sessions("host:1:a", engine.clock());
  engine.run();
  EXPECT_TRUE(waiter->grant);
  EXPECT_EQ(renew(*a, *holder->grant).status, RenewOutcome::Status::failed);
  EXPECT_EQ(release(*a, *holder->grant), ReleaseOutcome::Status::failed);
  const auto attempt = contend(*a, false);
  engine.advance(2s);
  EXPECT_EQ(attempt->failure, errc::ambiguous);
  EXPECT_EQ(residue(), 1U);
}

// --- Close -----------------------------------------------------------------------------------------------------------

TEST_F(MemoryBackendTest, CloseWaitsForCleanUps) {
  auto holder = contend(*a, true, 1h);
  disturb_everything({.fate = Fate::refused});
  (void)release(*a, *holder->grant);
  bool closed = false;
  a->close([&] { closed = true; });
  engine.advance(5s);
  EXPECT_FALSE(closed);
  heal();
  engine.advance(1s);
  EXPECT_TRUE(closed);
  EXPECT_EQ(residue(), 0U);
}

TEST_F(MemoryBackendTest, CloseIsDoneAtOnceWhenNothingIsLeft) {
  bool closed = false;
  a->close([&] { closed = true; });
  EXPECT_TRUE(closed);
}

TEST_F(MemoryBackendTest, ADestroyedBackendIgnoresWhatIsStillUnderWay) {
  disturb_everything({.delay = 500ms, .reply_delay = 500ms});
  auto attempt = contend(*a);
  const auto waiter = contend(*b);
  attempt->contention.reset();
  a.reset();
  engine.advance(60s);
  EXPECT_TRUE(waiter->grant);
}

// --- The other strategies --------------------------------------------------------------------------------------------

TEST_F(MemoryBackendTest, AWatchingWaiterIsWokenByTheRelease) {
  const auto watcher = make("w", Strategy::watch);
  const auto holder = contend(*a);
  const auto waiter = contend(*watcher);
  EXPECT_FALSE(waiter->grant);
  EXPECT_EQ(release(*a, *holder->grant), ReleaseOutcome::Status::released);
  EXPECT_TRUE(waiter->grant) << "no time has passed: only a wake-up can have told";
}

TEST_F(MemoryBackendTest, APollingWaiterComesBackByItself) {
  const auto poller = make("p", Strategy::poll);
  const auto holder = contend(*a);
  const auto waiter = contend(*poller);
  EXPECT_EQ(release(*a, *holder->grant), ReleaseOutcome::Status::released);
  EXPECT_FALSE(waiter->grant);
  engine.advance(40ms);
  EXPECT_TRUE(waiter->grant);
}

TEST_F(MemoryBackendTest, CapabilitiesFollowTheStrategy) {
  EXPECT_TRUE(a->capabilities().fair);
  EXPECT_EQ(a->capabilities().strategy, "queue");
  const auto watcher = make("w", Strategy::watch);
  EXPECT_FALSE(watcher->capabilities().fair);
  EXPECT_FALSE(watcher->capabilities().counts_waiters);
  EXPECT_EQ(watcher->capabilities().strategy, "watch");
}

// --- The URL ---------------------------------------------------------------------------------------------------------

class MemoryUrl : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(MemoryUrl, IsRefusedWithTheOffendingPart) {
  const auto& [url, part] = GetParam();
  try {
    (void)connect(url);
    FAIL() << url << " was accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), errc::invalid_argument);
    EXPECT_THAT(e.what(), testing::HasSubstr(part));
    EXPECT_THAT(e.what(), testing::Not(testing::HasSubstr("hunter2")));
  }
}

INSTANTIATE_TEST_SUITE_P(Bad, MemoryUrl,
                         testing::Values(std::pair("memory://a?strategy=fifo", "strategy"),
                                         std::pair("memory://a?strategy=", "strategy"),
                                         std::pair("memory://a?colour=red", "colour"),
                                         std::pair("memory://a/b", "path"), std::pair("memory:///b", "path"),
                                         std::pair("memory://a:80", "port"), std::pair("memory://a,b", "list"),
                                         std::pair("memory://user:hunter2@a", "user")));

TEST(MemoryName, ClientsOfOneNameShareTheirLocks) {
  const Client one = connect("memory://shared");
  const Client same = connect("memory://shared?strategy=watch");
  const Client other = connect("memory://other");
  const Client unnamed = connect("memory://");
  const Lease lease = one.lock("x").acquire();
  EXPECT_FALSE(same.lock("x").try_acquire());
  EXPECT_TRUE(other.lock("x").try_acquire());
  EXPECT_TRUE(unnamed.lock("x").try_acquire());
}

TEST(MemoryName, TokensGrowThoughTheStoreIsForgottenInBetween) {
  FencingToken last;
  for (int i = 0; i < 10; ++i) {
    const Client client = connect("memory://forgotten");
    const Lease lease = client.lock("x").acquire();
    EXPECT_GT(lease.token(), last);
    last = lease.token();
  }
}

// --- Real threads ----------------------------------------------------------------------------------------------------

class MemoryThreads : public testing::TestWithParam<const char*> {};

TEST_P(MemoryThreads, OfSeveralClientsExcludeEachOther) {
  constexpr int kThreads = 6;
  constexpr int kRounds = 50;
  int counter = 0;  // not atomic: only the lock protects it
  FencingToken last;
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      const Client client = connect(std::string("memory://threads?strategy=") + GetParam());
      DistributedLock lock = client.lock("counter");
      for (int round = 0; round < kRounds; ++round) {
        Lease lease = lock.acquire();
        EXPECT_GT(lease.token(), last);
        last = lease.token();
        ++counter;
        EXPECT_TRUE(lease.release());
      }
    });
  }
  threads.clear();
  EXPECT_EQ(counter, kThreads * kRounds);
}

INSTANTIATE_TEST_SUITE_P(Strategies, MemoryThreads, testing::Values("queue", "watch", "poll"),
                         [](const auto& strategy) { return std::string(strategy.param); });

}  // namespace
}  // namespace dlock::memory
