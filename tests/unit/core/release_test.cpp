// Giving leases back: held, lost and empty ones, once and twice, and in races with their loss.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

#include "core/client/lease_record.hpp"
#include "tests/support/core_fixture.hpp"

namespace dlock::detail {
namespace {

using namespace std::chrono_literals;
using RenewStatus = RenewOutcome::Status;
using ReleaseStatus = ReleaseOutcome::Status;

class ReleaseTest : public test::CoreTest {
 protected:
  void SetUp() override { open(); }
};

TEST_F(ReleaseTest, ReleasingAHeldLeaseIsConfirmed) {
  Lease lease = hold();
  engine_->advance(3s);
  const auto released = release(lease);
  EXPECT_FALSE(lease.held()) << "from the start of the call";
  EXPECT_EQ(released->calls, 0);
  answer_release({.status = ReleaseStatus::released});
  ASSERT_EQ(released->calls, 1);
  EXPECT_TRUE(released->was_ours);
  EXPECT_FALSE(released->failure.code);
  EXPECT_EQ(stats().released, 1U);
  EXPECT_EQ(stats().held, 0U);
  EXPECT_EQ(observer_->count("released x"), 1U);
  EXPECT_EQ(observer_->last_released.hold, 3s);
  EXPECT_FALSE(lease.lost().stop_requested()) << "a release is no loss";
  engine_->advance(60s);
  EXPECT_FALSE(lease.lost().stop_requested());
  EXPECT_EQ(service_->renewals_asked, 0U);
}

// --- ended() and remaining() ---

TEST_F(ReleaseTest, TheEndOfALease_AtARelease_FiresBeforeTheServiceIsAsked) {
  Lease lease = hold();
  int ends = 0;
  const std::stop_callback on_end(lease.ended(), [&] {
    ++ends;
    EXPECT_FALSE(lease.held());
    EXPECT_TRUE(service_->released.empty());
    EXPECT_FALSE(lease.release()) << "it is under way";
  });
  engine_->advance(3s);
  EXPECT_EQ(ends, 0);
  (void)release(lease);
  EXPECT_EQ(ends, 1);
  EXPECT_TRUE(lease.ended().stop_requested());
  EXPECT_FALSE(lease.lost().stop_requested());
}

TEST_F(ReleaseTest, TheEndOfALease_AtItsDestruction_Fires) {
  int ends = 0;
  std::optional<std::stop_callback<std::function<void()>>> on_end;
  {
    const Lease lease = hold();
    on_end.emplace(lease.ended(), [&] { ++ends; });
  }
  EXPECT_EQ(ends, 1);
}

TEST_F(ReleaseTest, TheEndOfALease_WhoseCallbackDestroysIt_FiresOnce) {
  std::optional<Lease> lease = hold();
  int ends = 0;
  const std::stop_callback on_end(lease->ended(), [&] {
    ++ends;
    lease.reset();
  });
  lease->release_in_background();
  EXPECT_EQ(ends, 1);
  EXPECT_EQ(service_->released.size(), 1U);
}

TEST_F(ReleaseTest, TheEndOfALease_AtALoss_FiresWithTheLoss) {
  const Lease lease = hold();
  const std::stop_token ended = lease.ended();
  engine_->advance(40s);
  EXPECT_TRUE(ended.stop_requested());
  EXPECT_TRUE(lease.ended().stop_requested());
  EXPECT_FALSE(Lease().ended().stop_possible());
}

TEST_F(ReleaseTest, TheEndOfALease_ThatIsReleasedAfterItExpired_FiresWithinTheCall) {
  Lease lease = hold();
  const std::stop_token ended = lease.ended();
  const std::stop_token lost = lease.lost();
  engine_->manual_clock().advance(40s);
  lease.release_in_background();
  EXPECT_TRUE(lost.stop_requested());
  EXPECT_TRUE(ended.stop_requested());
}

TEST_F(ReleaseTest, WhatRemainsOfALease_IsByTheClientsClockAndZeroWhenItIsNotHeld) {
  Lease lease = hold();
  EXPECT_EQ(lease.remaining(), lease.valid_until() - now());
  engine_->manual_clock().advance(3s);
  EXPECT_EQ(lease.remaining(), lease.valid_until() - now());
  EXPECT_GT(lease.remaining(), 0s);
  (void)release(lease);
  EXPECT_EQ(lease.remaining(), 0s);
  EXPECT_EQ(Lease().remaining(), 0s);
  const Lease lost = hold({}, "y");
  engine_->manual_clock().advance(40s);
  EXPECT_EQ(lost.remaining(), 0s);
}

// --- release_in_background() ---

TEST_F(ReleaseTest, AReleaseInTheBackground_ThatFails_IsToldToTheObserver) {
  Lease lease = hold();
  lease.release_in_background();
  EXPECT_FALSE(lease.held());
  ASSERT_EQ(service_->released.size(), 1U);
  answer_release({.status = ReleaseStatus::failed, .failure = {errc::unavailable, "no answer"}});
  EXPECT_EQ(observer_->count("warning x"), 1U);
  EXPECT_EQ(observer_->last_warning.reason.detail, "no answer");
}

TEST_F(ReleaseTest, AReleaseInTheBackground_OfALeaseThatIsNotHeld_HasNoEffect) {
  Lease lease = hold();
  (void)release(lease);
  lease.release_in_background();
  Lease().release_in_background();
  EXPECT_EQ(service_->released.size(), 1U);
  answer_release({.status = ReleaseStatus::released});
  EXPECT_EQ(observer_->count("warning x"), 0U);
}

// A backend judges by it whether a lock that is gone can have been released by a request whose answer was lost.
TEST_F(ReleaseTest, ARelease_AfterARenewal_HasTheRenewedEnd) {
  Lease lease = hold();
  engine_->advance(12s);
  const TimePoint renewed_until = now() + 29s;
  answer_renewal({.status = RenewStatus::renewed, .valid_until = renewed_until});
  ASSERT_EQ(lease.valid_until(), renewed_until);
  (void)release(lease);
  ASSERT_EQ(service_->released.size(), 1U);
  EXPECT_EQ(service_->released[0].valid_until, renewed_until);
}

TEST_F(ReleaseTest, ASecondReleaseAnswersFalse) {
  Lease lease = hold();
  const auto first = release(lease);
  const auto second = release(lease);
  EXPECT_EQ(second->calls, 1);
  EXPECT_FALSE(second->was_ours);
  EXPECT_FALSE(second->failure.code);
  answer_release({.status = ReleaseStatus::released});
  EXPECT_TRUE(first->was_ours);
  EXPECT_EQ(service_->released.size(), 1U);
  EXPECT_EQ(stats().lost, 0U);
}

TEST_F(ReleaseTest, TheReleaseOfALostLeaseAnswersFalseAndStillTellsTheService) {
  Lease lease = hold();
  engine_->advance(40s);
  ASSERT_FALSE(lease.held());
  const auto released = release(lease);
  ASSERT_EQ(released->calls, 1) << "without waiting for the service";
  EXPECT_FALSE(released->was_ours);
  EXPECT_FALSE(released->failure.code);
  ASSERT_EQ(service_->released.size(), 1U) << "it may keep the lock for us; the owner id keeps the next holder safe";
  EXPECT_EQ(service_->released[0].owner, lease.owner());
  EXPECT_EQ(stats().lost, 1U);
  EXPECT_EQ(stats().released, 0U);
}

TEST_F(ReleaseTest, TheReleaseOfALeaseThatSleptThroughItsEndAnswersFalse) {
  Lease lease = hold();
  engine_->manual_clock().advance(31s);
  const auto released = std::make_shared<Released>();
  lease.async_release([released](std::error_code, bool was_ours) {
    ++released->calls;
    released->was_ours = was_ours;
  });
  engine_->run();
  EXPECT_EQ(released->calls, 1);
  EXPECT_FALSE(released->was_ours);
  EXPECT_EQ(stats().lost, 1U);
  EXPECT_TRUE(lease.lost().stop_requested());
  EXPECT_EQ(observer_->count("lost x"), 1U);
}

TEST_F(ReleaseTest, ACallbackOfALossMayDestroyItsLeaseWhileTheProgramAsksForIt) {
  auto lease = std::make_unique<Lease>(hold());
  const std::stop_callback destroy(lease->lost(), [&] { lease.reset(); });
  engine_->manual_clock().advance(31s);
  const std::stop_token lost = lease->lost();
  EXPECT_TRUE(lost.stop_requested());
  EXPECT_EQ(lease, nullptr);
  engine_->run();
  EXPECT_EQ(service_->released.size(), 1U);
}

TEST_F(ReleaseTest, WhatTheServiceCalledLostIsNotReleasedThere) {
  Lease lease = hold();
  task([&] { service_->host().lost(lease.owner(), {errc::lost, "stolen"}); });
  EXPECT_FALSE(release(lease)->was_ours);
  EXPECT_TRUE(service_->released.empty());
}

TEST_F(ReleaseTest, AServiceThatSaysNotYoursMakesTheReleaseAnswerFalse) {
  Lease lease = hold();
  const auto released = release(lease);
  answer_release({.status = ReleaseStatus::not_owner});
  EXPECT_EQ(released->calls, 1);
  EXPECT_FALSE(released->was_ours);
  EXPECT_FALSE(released->failure.code);
  EXPECT_EQ(observer_->count("released x unconfirmed"), 1U);
}

TEST_F(ReleaseTest, AnUnconfirmedReleaseIsAFailure) {
  Lease lease = hold();
  const auto released = release(lease);
  answer_release({.status = ReleaseStatus::failed, .failure = {errc::ambiguous, "no answer"}});
  EXPECT_EQ(released->calls, 1);
  EXPECT_FALSE(released->was_ours);
  EXPECT_EQ(released->failure.code, errc::ambiguous);
  EXPECT_EQ(released->failure.detail, "no answer");
  EXPECT_EQ(stats().released, 0U);
}

TEST_F(ReleaseTest, AReleaseThatWaitsSaysThatItWasNotConfirmed) {
  service_->on_release = [](auto& release) {
    release.done({.status = ReleaseStatus::failed, .failure = {errc::ambiguous, "no answer"}});
  };
  Lease thrown = hold();
  try {
    (void)thrown.release();
    ADD_FAILURE() << "not confirmed, and no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), errc::ambiguous);
  }
  Lease told = hold({}, "y");
  std::error_code ec;
  EXPECT_FALSE(told.release(ec));
  EXPECT_EQ(ec, errc::ambiguous);
}

TEST_F(ReleaseTest, ALossReportedWhileTheReleaseIsQueuedIsNoLossSignal) {
  service_->on_release = [](auto& release) { release.done({.status = ReleaseStatus::released}); };
  Lease lease = hold();
  const std::stop_token lost = lease.lost();
  engine_->set_busy(true);
  (void)engine_->dispatch([&] { service_->host().lost(lease.owner(), {errc::lost, "stolen"}); });
  auto released = std::make_shared<Released>();
  lease.async_release([released](std::error_code, bool was_ours) {
    ++released->calls;
    released->was_ours = was_ours;
  });
  engine_->set_busy(false);
  engine_->run();
  EXPECT_FALSE(lost.stop_requested());
  ASSERT_EQ(released->calls, 1);
  EXPECT_FALSE(released->was_ours);
  EXPECT_EQ(observer_->count("lost x"), 0U);
  EXPECT_EQ(stats().lost, 0U);
}

TEST_F(ReleaseTest, ARenewalUnderWayWhenTheLeaseIsReleasedDoesNoHarm) {
  Lease lease = hold();
  engine_->advance(12s);
  ASSERT_EQ(service_->renewals.size(), 1U);
  const auto released = release(lease);
  answer_release({.status = ReleaseStatus::released});
  answer_renewal({.status = RenewStatus::renewed, .valid_until = now() + 30s});
  EXPECT_TRUE(released->was_ours);
  EXPECT_FALSE(lease.held());
  engine_->advance(60s);
  EXPECT_EQ(service_->renewals_asked, 1U);
}

TEST_F(ReleaseTest, DestroyingALeaseReleasesItAndWaitsForAtMostTheCloseTimeout) {
  const TimePoint start = now();
  { const Lease lease = hold(); }
  EXPECT_EQ(now(), start + 2s) << "the service did not answer";
  EXPECT_EQ(service_->released.size(), 1U);
}

TEST_F(ReleaseTest, DestroyingALostLeaseDoesNotWait) {
  TimePoint lost_at;
  {
    const Lease lease = hold();
    engine_->advance(60s);
    lost_at = now();
  }
  EXPECT_EQ(now(), lost_at);
  EXPECT_EQ(service_->released.size(), 1U);
}

TEST_F(ReleaseTest, AReleasedLeaseIsDestroyedWithoutASecondRelease) {
  {
    Lease lease = hold();
    (void)release(lease);
  }
  EXPECT_EQ(service_->released.size(), 1U);
}

TEST_F(ReleaseTest, MovingALeaseMovesTheLockAndAssignmentReleasesTheOld) {
  service_->on_release = [](auto& release) { release.done({.status = ReleaseStatus::released}); };
  Lease a = hold({}, "a");
  Lease b = hold({}, "b");
  Lease moved = std::move(a);
  EXPECT_TRUE(moved.held());
  EXPECT_EQ(service_->released.size(), 0U);
  moved = std::move(b);
  ASSERT_EQ(service_->released.size(), 1U);
  EXPECT_EQ(service_->released[0].name, "a");
  EXPECT_EQ(moved.name(), "b");
  Lease& self = moved;
  moved = std::move(self);
  EXPECT_TRUE(moved.held()) << "self-assignment";
}

TEST_F(ReleaseTest, TheGaugeCountsWhatIsHeldNow) {
  service_->on_release = [](auto& release) { release.done({.status = ReleaseStatus::released}); };
  Lease a = hold({}, "a");
  Lease b = hold({}, "b");
  EXPECT_EQ(stats().held, 2U);
  task([&] { service_->host().lost(a.owner(), {errc::lost, ""}); });
  EXPECT_EQ(stats().held, 1U) << "a lost lease is not held";
  (void)release(a);
  EXPECT_EQ(stats().held, 1U);
  (void)release(b);
  EXPECT_EQ(stats().held, 0U);
}

TEST_F(ReleaseTest, AnEmptyLeaseIsHarmless) {
  Lease lease;
  EXPECT_FALSE(lease.has_value());
  EXPECT_FALSE(lease.held());
  EXPECT_FALSE(lease.release());
  EXPECT_EQ(lease.token(), FencingToken());
  EXPECT_EQ(lease.name(), "");
  EXPECT_EQ(lease.owner(), OwnerId());
  EXPECT_FALSE(lease.lost().stop_possible());
  EXPECT_LT(lease.valid_until(), now());
  int calls = 0;
  lease.async_release([&](std::error_code ec, bool was_ours) {
    ++calls;
    EXPECT_FALSE(ec);
    EXPECT_FALSE(was_ours);
  });
  EXPECT_EQ(calls, 1);
  Lease other = std::move(lease);
  EXPECT_FALSE(other.has_value());
}

}  // namespace
}  // namespace dlock::detail
