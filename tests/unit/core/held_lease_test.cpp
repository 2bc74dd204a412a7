// What happens to a lease between its grant and its end: renewal, extension, loss, release.
#include "core/client/lease_table.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "tests/support/core_fixture.hpp"

namespace dlock::detail {
namespace {

using namespace std::chrono_literals;
using RenewStatus = RenewOutcome::Status;
using ReleaseStatus = ReleaseOutcome::Status;

class HeldLeaseTest : public test::CoreTest {
 protected:
  void SetUp() override { open(); }
  void answer_renewals() {
    service_->on_renew = [this](auto& renewal) {
      renewal.done({.status = RenewStatus::renewed, .valid_until = service_->valid_until(renewal.grant.lease)});
    };
  }
};

class SessionLeaseTest : public HeldLeaseTest {
 protected:
  void SetUp() override {
    service_->capabilities.lease_kind = LeaseKind::session;
    HeldLeaseTest::SetUp();
  }
};

class ProcessLeaseTest : public HeldLeaseTest {
 protected:
  void SetUp() override {
    service_->capabilities.lease_kind = LeaseKind::process;
    HeldLeaseTest::SetUp();
  }
};

// --- Renewal ---------------------------------------------------------------------------------------------------------

TEST_F(HeldLeaseTest, IsRenewedSoonAfterAReconnection) {
  answer_renewals();
  const Lease first = hold();
  const Lease second = hold({}, "y");
  const auto report = [&](ConnectionEvent::State state) {
    EXPECT_TRUE(engine_->dispatch([&] { service_->host().connection({state, {}}); }));
  };
  report(ConnectionEvent::State::connected);
  engine_->advance(1s);
  EXPECT_EQ(service_->renewals_asked, 0U) << "it was not away";
  report(ConnectionEvent::State::reconnecting);
  report(ConnectionEvent::State::connected);
  engine_->advance(1s);
  EXPECT_EQ(service_->renewals_asked, 2U);
  EXPECT_TRUE(first.held());
  EXPECT_TRUE(second.held());
}

TEST_F(HeldLeaseTest, ARenewalIsReportedWithItsLatency) {
  TimePoint sent;
  service_->on_renew = [&](auto& renewal) {
    sent = now();
    service_->renewals.push_back(std::move(renewal));
  };
  const Lease lease = hold();
  const auto answer_next = [&](std::chrono::nanoseconds latency, RenewOutcome outcome) {
    while (service_->renewals.empty() && lease.held()) engine_->advance(10ms);
    engine_->advance(sent + latency - now());
    outcome.valid_until = lease_valid_until(sent, 30s);
    answer_renewal(std::move(outcome));
  };
  answer_next(700ms, {.status = RenewStatus::failed, .failure = {errc::unavailable, "no answer"}});
  EXPECT_EQ(observer_->count("renewed x"), 0U);
  answer_next(250ms, {.status = RenewStatus::renewed});
  EXPECT_EQ(observer_->count("renewed x"), 1U);
  EXPECT_EQ(observer_->last_renewed.latency, 250ms) << "of the attempt that succeeded";
  EXPECT_EQ(observer_->last_renewed.token, lease.token());
}

TEST_F(HeldLeaseTest, IsRenewedAboutEveryThirdOfTheLease) {
  answer_renewals();
  const Lease lease = hold();
  for (int i = 0; i < 3600; ++i) {
    engine_->advance(1s);
    ASSERT_TRUE(lease.held());
    ASSERT_GT(lease.valid_until(), now() + 15s);
  }
  EXPECT_GE(service_->renewals_asked, 320U);
  EXPECT_LE(service_->renewals_asked, 410U);
  EXPECT_EQ(stats().renewed, service_->renewals_asked);
  EXPECT_EQ(observer_->count("renewed x"), service_->renewals_asked);
  EXPECT_FALSE(lease.lost().stop_requested());
}

TEST_F(HeldLeaseTest, AServiceThatDoesNotAnswerRenewalsLosesTheLeaseInTime) {
  const Lease lease = hold();
  const TimePoint end = lease.valid_until();
  std::optional<TimePoint> signalled;
  const std::stop_callback on_lost(lease.lost(), [&] { signalled = now(); });
  engine_->advance(60s);
  EXPECT_EQ(service_->renewals_asked, 1U);
  ASSERT_TRUE(signalled);
  EXPECT_LT(*signalled, end);
  EXPECT_GT(*signalled, end - 50ms);
  EXPECT_FALSE(lease.held());
  EXPECT_EQ(lease.valid_until(), end);
  EXPECT_EQ(stats().lost, 1U);
  EXPECT_EQ(observer_->count("lost x"), 1U);
  EXPECT_EQ(observer_->last_lost.reason.code, errc::lost);
}

TEST_F(HeldLeaseTest, AFailedRenewalIsRetriedAndWarnedOf) {
  int failures = 3;
  service_->on_renew = [&](auto& renewal) {
    if (failures-- > 0) return renewal.done({.status = RenewStatus::failed, .failure = {errc::unavailable, "blip"}});
    renewal.done({.status = RenewStatus::renewed, .valid_until = service_->valid_until(renewal.grant.lease)});
  };
  const Lease lease = hold();
  engine_->advance(20s);
  EXPECT_TRUE(lease.held());
  EXPECT_EQ(stats().renew_failed, 3U);
  EXPECT_GE(stats().renewed, 1U);
  EXPECT_EQ(observer_->count("warning x"), 1U);
  engine_->advance(60s);
  EXPECT_TRUE(lease.held());
}

TEST_F(HeldLeaseTest, AWarning_OfAnUnansweredRenewal_SaysThatTheServiceIsUnavailable) {
  service_->on_renew = [](auto& renewal) {
    renewal.done({.status = RenewStatus::failed, .failure = {errc::ambiguous, "no answer"}});
  };
  const Lease lease = hold();
  engine_->advance(12s);
  EXPECT_EQ(observer_->last_warning.reason.code, errc::unavailable) << "nothing of a renewal is cleaned up";
  EXPECT_EQ(observer_->last_warning.reason.detail, "no answer");
}

TEST_F(HeldLeaseTest, ARenewalThatIsRefusedForGoodIsTriedAFewTimesMore) {
  for (const errc code : {errc::access_denied, errc::invalid_argument, errc::unsupported, errc::protocol}) {
    const auto refused_before = stats().renew_failed;
    const auto warned_before = observer_->count("warning x");
    service_->on_renew = [code](auto& renewal) {
      renewal.done({.status = RenewStatus::failed, .failure = {code, "no"}});
    };
    const Lease lease = hold();
    engine_->advance(30s);
    EXPECT_FALSE(lease.held());
    EXPECT_GE(stats().renew_failed - refused_before, 4U) << make_error_code(code);
    EXPECT_LE(stats().renew_failed - refused_before, 5U) << make_error_code(code);
    EXPECT_EQ(observer_->count("warning x") - warned_before, 1U) << make_error_code(code);
    EXPECT_EQ(observer_->last_warning.reason.code, code);
    EXPECT_EQ(observer_->last_warning.reason.detail, "no");
  }
}

TEST_F(HeldLeaseTest, ARenewalThatWasRefusedIsSavedWhenTheRefusalEnds) {
  int failures = 2;
  service_->on_renew = [&](auto& renewal) {
    if (failures-- > 0) return renewal.done({.status = RenewStatus::failed, .failure = {errc::access_denied, "no"}});
    renewal.done({.status = RenewStatus::renewed, .valid_until = service_->valid_until(renewal.grant.lease)});
  };
  const Lease lease = hold();
  engine_->advance(60s);
  EXPECT_TRUE(lease.held());
}

TEST_F(HeldLeaseTest, EachKindOfTroubleWithRenewalsIsWarnedOfOnceUntilItIsOver) {
  errc code = errc::unavailable;
  service_->on_renew = [&](auto& renewal) {
    code = code == errc::unavailable ? errc::timed_out : errc::unavailable;
    renewal.done({.status = RenewStatus::failed, .failure = {code, "blip"}});
  };
  const Lease lease = hold();
  engine_->advance(20s);
  EXPECT_GE(stats().renew_failed, 4U);
  EXPECT_EQ(observer_->count("warning x"), 2U);
  const auto fail = std::exchange(service_->on_renew, nullptr);
  answer_renewals();
  engine_->advance(10s);
  ASSERT_GE(stats().renewed, 1U);
  service_->on_renew = fail;
  engine_->advance(20s);
  EXPECT_EQ(observer_->count("warning x"), 4U);
}

TEST_F(HeldLeaseTest, ARenewalThatSaysNotYoursLosesTheLeaseAtOnce) {
  const Lease lease = hold();
  const std::stop_token lost = lease.lost();
  engine_->advance(12s);
  answer_renewal({.status = RenewStatus::lost, .failure = {errc::lost, "broken by an operator"}});
  EXPECT_FALSE(lease.held());
  EXPECT_TRUE(lost.stop_requested());
  EXPECT_EQ(observer_->last_lost.reason.detail, "broken by an operator");
  engine_->advance(60s);
  EXPECT_EQ(service_->renewals_asked, 1U);
}

TEST_F(HeldLeaseTest, ALateRenewalRevivesNothing) {
  const Lease lease = hold();
  engine_->advance(40s);
  ASSERT_FALSE(lease.held());
  const TimePoint end = lease.valid_until();
  answer_renewal({.status = RenewStatus::renewed, .valid_until = now() + 30s});
  EXPECT_FALSE(lease.held());
  EXPECT_EQ(lease.valid_until(), end);
  EXPECT_TRUE(lease.lost().stop_requested());
}

TEST_F(HeldLeaseTest, AProcessThatSleptThroughTheLeaseIsToldByItsFirstLook) {
  answer_renewals();
  const Lease lease = hold();
  engine_->manual_clock().advance(31s);
  EXPECT_FALSE(lease.held()) << "nothing has run yet";
  EXPECT_TRUE(lease.lost().stop_requested()) << "seen at once by whoever asks";
  engine_->run();
  EXPECT_FALSE(lease.held());
  EXPECT_EQ(service_->renewals_asked, 0U) << "what is over is not renewed";
  EXPECT_EQ(stats().lost, 1U);
  EXPECT_EQ(observer_->count("lost x"), 1U);
}

TEST_F(HeldLeaseTest, ARenewalThatArrivesAfterTheProgramSawTheEndRevivesNothing) {
  const Lease lease = hold();
  engine_->advance(12s);
  ASSERT_EQ(service_->renewals.size(), 1U);
  const TimePoint renewed_until = now() + 30s;
  engine_->manual_clock().advance(25s);
  EXPECT_FALSE(lease.held());
  answer_renewal({.status = RenewStatus::renewed, .valid_until = renewed_until});
  EXPECT_FALSE(lease.held());
  EXPECT_EQ(stats().lost, 1U);
}

// The engine had read the clock before the program did, and writes afterwards.
TEST_F(HeldLeaseTest, WhatTheProgramSawOverStaysOverThoughItIsExtended) {
  const Lease lease = hold();
  engine_->manual_clock().advance(31s);
  EXPECT_FALSE(lease.held());
  LeaseRecord::of(lease)->extend(now() + 30s);
  EXPECT_FALSE(lease.held());
  EXPECT_TRUE(lease.lost().stop_requested());
}

TEST_F(HeldLeaseTest, ARenewalThatIsAnsweredAfterTheLossChangesNothing) {
  const Lease lease = hold();
  engine_->advance(12s);
  ASSERT_EQ(service_->renewals.size(), 1U);
  const TimePoint end = lease.valid_until();
  task([&] { service_->host().lost(lease.owner(), {errc::lost, "broken by an operator"}); });
  answer_renewal({.status = RenewStatus::renewed, .valid_until = now() + 30s});
  EXPECT_EQ(lease.valid_until(), end);
  EXPECT_EQ(stats().renewed, 0U);
  EXPECT_EQ(observer_->count("renewed x"), 0U);
}

TEST_F(HeldLeaseTest, WhatTheProgramWasToldIsLostIsNotRenewedOn) {
  // The program reads the clock a moment after the engine did: to it the lease is over, to the engine renewed.
  answer_renewals();
  const auto outcome = acquire();
  const auto state = [&] {
    std::shared_ptr<LeaseRecord> out;
    start_acquire(core_, {"y"}, {}, [&](AcquireResult result) { out = std::move(result.lease); });
    grant(*service_->contends[1]);
    return out;
  }();
  ASSERT_TRUE(state->mark_lost());
  engine_->advance(60s);
  EXPECT_EQ(service_->renewals_asked, 0U);
  EXPECT_EQ(stats().lost, 1U) << "and the core has noticed";
  EXPECT_EQ(observer_->count("lost y"), 1U);
  Lease lease = LeaseRecord::make_lease(state);
  EXPECT_FALSE(lease.held());
  service_->on_release = [](auto& release) { release.done({.status = ReleaseStatus::released}); };
}

TEST_F(HeldLeaseTest, ARenewalThatIsAnsweredAfterTheProgramWasToldOfTheLossIsNone) {
  std::shared_ptr<LeaseRecord> state;
  start_acquire(core_, {"x"}, {}, [&](AcquireResult result) { state = std::move(result.lease); });
  grant(service_->last_contend());
  engine_->advance(12s);
  ASSERT_EQ(service_->renewals.size(), 1U);
  ASSERT_TRUE(state->mark_lost());
  answer_renewal({.status = RenewStatus::renewed, .valid_until = now() + 30s});
  EXPECT_EQ(stats().renewed, 0U);
  EXPECT_EQ(observer_->count("renewed x"), 0U);
  EXPECT_EQ(stats().lost, 1U);
  const Lease lease = LeaseRecord::make_lease(std::move(state));
  EXPECT_FALSE(lease.held());
  service_->on_release = [](auto& release) { release.done({.status = ReleaseStatus::released}); };
}

TEST_F(HeldLeaseTest, AFixedLengthIsNotRenewedAndEnds) {
  Lease lease = hold({.lease = 10s, .renew = false});
  std::optional<TimePoint> signalled;
  const std::stop_callback on_lost(lease.lost(), [&] { signalled = now(); });
  const TimePoint end = lease.valid_until();
  engine_->advance(20s);
  EXPECT_EQ(service_->renewals_asked, 0U);
  ASSERT_TRUE(signalled);
  EXPECT_LE(*signalled, end);
  EXPECT_FALSE(lease.held());
  EXPECT_TRUE(service_->released.empty()) << "the service frees it by itself";
}

TEST_F(HeldLeaseTest, AShortLeaseAndASlowServiceGetAlong) {
  // Answers take most of the response timeout, the lease is barely longer.
  const auto outcome = acquire({.lease = 3s});
  const Grant granted = service_->grant_of(service_->last_contend().request);
  engine_->advance(1800ms);
  task([&] { service_->last_contend().grant(granted); });
  ASSERT_EQ(outcome->calls, 1);
  for (int i = 0; i < 100; ++i) {
    while (service_->renewals.empty()) {
      engine_->advance(10ms);
      ASSERT_TRUE(outcome->lease.held()) << "renewal " << i << " was not asked for in time";
    }
    const TimePoint sent = now();
    engine_->advance(500ms);
    answer_renewal({.status = RenewStatus::renewed, .valid_until = lease_valid_until(sent, 3s)});
    ASSERT_TRUE(outcome->lease.held());
  }
}

// --- Sessions --------------------------------------------------------------------------------------------------------

TEST_F(SessionLeaseTest, LivesAsLongAsTheSessionIsHeardOf) {
  const Lease lease = hold();
  for (int i = 0; i < 100; ++i) {
    engine_->advance(10s);
    ASSERT_TRUE(lease.held());
    task([&] { service_->host().extended(lease.owner(), lease_valid_until(now(), 30s)); });
    ASSERT_EQ(lease.valid_until(), lease_valid_until(now(), 30s));
  }
  EXPECT_EQ(service_->renewals_asked, 0U);
  EXPECT_EQ(observer_->count("renewed x"), 0U) << "no request of its own, so no latency";
  engine_->advance(30s);
  EXPECT_FALSE(lease.held());
  EXPECT_TRUE(lease.lost().stop_requested());
}

TEST_F(SessionLeaseTest, ALateExtensionRevivesNothing) {
  const Lease lease = hold();
  engine_->advance(31s);
  ASSERT_FALSE(lease.held());
  task([&] { service_->host().extended(lease.owner(), now() + 30s); });
  EXPECT_FALSE(lease.held());
}

TEST_F(SessionLeaseTest, AnExtensionNeverShortens) {
  const Lease lease = hold();
  const TimePoint end = lease.valid_until();
  task([&] { service_->host().extended(lease.owner(), now() + 1s); });
  EXPECT_EQ(lease.valid_until(), end);
}

TEST_F(SessionLeaseTest, TheLossOfTheSessionIsTheLossOfTheLease) {
  const Lease lease = hold();
  const std::stop_token lost = lease.lost();
  task([&] { service_->host().lost(lease.owner(), {errc::lost, "the session expired"}); });
  EXPECT_TRUE(lost.stop_requested());
  EXPECT_FALSE(lease.held());
  EXPECT_EQ(observer_->last_lost.reason.detail, "the session expired");
  task([&] { service_->host().lost(lease.owner(), {errc::lost, "again"}); });
  EXPECT_EQ(stats().lost, 1U);
}

TEST_F(SessionLeaseTest, ALossWithoutAReasonGetsOne) {
  const Lease lease = hold();
  task([&] { service_->host().lost(lease.owner(), {}); });
  EXPECT_EQ(observer_->last_lost.reason.code, errc::lost);
  EXPECT_NE(observer_->last_lost.reason.detail.find("\"x\""), std::string::npos);
}

TEST_F(SessionLeaseTest, NewsOfUnknownOwnersAreIgnored) {
  task([&] {
    service_->host().lost(OwnerId(1, 2), {errc::lost, ""});
    service_->host().extended(OwnerId(1, 2), now() + 1h);
  });
  EXPECT_EQ(stats().lost, 0U);
}

TEST_F(SessionLeaseTest, AFixedLengthEndsThoughTheSessionLivesOn) {
  service_->on_release = [](auto& release) { release.done({.status = ReleaseStatus::released}); };
  const Lease lease = hold({.lease = 10s, .renew = false});
  const TimePoint end = now() + 10s;
  EXPECT_LE(lease.valid_until(), end);
  engine_->advance(5s);
  task([&] { service_->host().extended(lease.owner(), now() + 30s); });
  EXPECT_LE(lease.valid_until(), end) << "a fixed length is not extended";
  engine_->advance(5s);
  EXPECT_FALSE(lease.held());
  EXPECT_TRUE(lease.lost().stop_requested());
  EXPECT_EQ(service_->released.size(), 1U) << "nobody else would free it";
}

TEST_F(SessionLeaseTest, AFixedLengthLongerThanTheSessionIsExtendedUpToItsEnd) {
  service_->on_release = [](auto& release) { release.done({.status = ReleaseStatus::released}); };
  const auto outcome = acquire({.lease = 60s, .renew = false});
  const TimePoint start = now();
  Grant grant = service_->grant_of(service_->last_contend().request);
  grant.valid_until = lease_valid_until(now(), 20s);
  task([&] { service_->last_contend().grant(grant); });
  for (int i = 0; i < 5; ++i) {
    engine_->advance(10s);
    task([&] { service_->host().extended(outcome->lease.owner(), lease_valid_until(now(), 20s)); });
    ASSERT_TRUE(outcome->lease.held());
  }
  EXPECT_LE(outcome->lease.valid_until(), start + 60s);
  engine_->advance(10s);
  EXPECT_FALSE(outcome->lease.held());
}

// --- Processes -------------------------------------------------------------------------------------------------------

TEST_F(ProcessLeaseTest, DoesNotRunOut) {
  const Lease lease = hold();
  EXPECT_EQ(lease.valid_until(), TimePoint::max());
  EXPECT_EQ(engine_->pending_timers(), 0U);
  engine_->advance(std::chrono::hours(24 * 365));
  EXPECT_TRUE(lease.held());
}

TEST_F(ProcessLeaseTest, AFixedLengthEndsAndIsReleased) {
  service_->on_release = [](auto& release) { release.done({.status = ReleaseStatus::released}); };
  Lease lease = hold({.lease = 10s, .renew = false});
  EXPECT_EQ(lease.valid_until(), now() + 10s);
  engine_->advance(10s);
  EXPECT_FALSE(lease.held());
  EXPECT_TRUE(lease.lost().stop_requested());
  ASSERT_EQ(service_->released.size(), 1U);
  EXPECT_FALSE(release(lease)->was_ours);
  EXPECT_EQ(service_->released.size(), 1U) << "not twice";
}

TEST_F(ProcessLeaseTest, AFixedLengthIsReleasedOnceThoughTheProgramReleasesAtTheSameTime) {
  service_->on_release = [](auto& release) { release.done({.status = ReleaseStatus::released}); };
  Lease lease = hold({.lease = 10s, .renew = false});
  // The program's release has begun, but the timer that ends the lease runs before the release's task.
  auto released = std::make_shared<Released>();
  Timer timer(*engine_);
  (void)engine_->dispatch([&] {
    timer.arm(now() + 9s, [&] {
      lease.async_release([released](std::error_code, bool was_ours) {
        ++released->calls;
        released->was_ours = was_ours;
      });
    });
  });
  engine_->sleep_through(lease.valid_until() - now() - 1ns);
  EXPECT_EQ(released->calls, 1);
  EXPECT_TRUE(released->was_ours);
  EXPECT_EQ(service_->released.size(), 1U);
  EXPECT_EQ(stats().lost, 0U);
}

}  // namespace
}  // namespace dlock::detail
