// A lease between its grant and its end: renewal, extension, loss.
#include "core/client/lease_table.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stop_token>

#include "tests/support/core_fixture.hpp"

namespace dlock::detail {
namespace {

using namespace std::chrono_literals;
using RenewStatus = RenewOutcome::Status;

class HeldLeaseTest : public test::CoreTest {
 protected:
  void SetUp() override { open(); }
};

class SessionLeaseTest : public test::CoreTest {
 protected:
  void SetUp() override {
    service_->capabilities.lease_kind = LeaseKind::session;
    open();
  }
  void extend(const Lease& lease, TimePoint until) {
    task([&] { service_->host().extended(lease.owner(), until); });
  }
};

class ProcessLeaseTest : public test::CoreTest {
 protected:
  void SetUp() override {
    service_->capabilities.lease_kind = LeaseKind::process;
    confirm_releases();
    open();
  }
};

// --- Renewal ---------------------------------------------------------------------------------------------------------

TEST_F(HeldLeaseTest, Reconnection_IsFollowedByARenewal) {
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

TEST_F(HeldLeaseTest, Renewal_IsReportedWithItsLatency) {
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

// How often it is retried: renewal_schedule_test.cpp.
TEST_F(HeldLeaseTest, FailedRenewal_IsRetriedAndWarnedOfOnceUntilASuccess) {
  struct Row {
    std::vector<errc> failures;  // the last one again and again
    int failing;                 // how many of them
    std::uint64_t most_attempts;
    std::uint64_t warnings;
    errc last_warned;
  };
  constexpr int always = 1000;
  const std::vector<Row> rows = {
      {{errc::unavailable}, 3, 3, 1, errc::unavailable},
      {{errc::access_denied}, 2, 2, 1, errc::access_denied},
      {{errc::unavailable}, always, 200, 1, errc::unavailable},
      {{errc::ambiguous}, always, 200, 1, errc::unavailable},  // nothing of a renewal is cleaned up
      {{errc::access_denied}, always, 5, 1, errc::access_denied},
      {{errc::invalid_argument}, always, 5, 1, errc::invalid_argument},
      {{errc::unsupported}, always, 5, 1, errc::unsupported},
      {{errc::protocol}, always, 5, 1, errc::protocol},
      {{errc::unavailable, errc::timed_out, errc::unavailable}, always, 200, 2, errc::timed_out}};
  for (const Row& row : rows) {
    SCOPED_TRACE(&row - rows.data());
    const Stats before = stats();
    const auto warned = observer_->count("warning x");
    int failed = 0;
    service_->on_renew = [&](auto& renewal) {
      if (failed >= row.failing) {
        return renewal.done(
            {.status = RenewStatus::renewed, .valid_until = service_->valid_until(renewal.grant.lease)});
      }
      const std::size_t which = std::min<std::size_t>(static_cast<std::size_t>(failed++), row.failures.size() - 1);
      renewal.done({.status = RenewStatus::failed, .failure = {row.failures[which], "no"}});
    };
    const Lease lease = hold();
    engine_->advance(60s);
    EXPECT_EQ(lease.held(), row.failing != always);
    EXPECT_GE(stats().renew_failed - before.renew_failed, row.failing == always ? 4U : row.most_attempts);
    EXPECT_LE(stats().renew_failed - before.renew_failed, row.most_attempts);
    EXPECT_EQ(stats().renewed > before.renewed, row.failing != always);
    EXPECT_EQ(observer_->count("warning x") - warned, row.warnings);
    EXPECT_EQ(observer_->last_warning.reason.code, row.last_warned);
    EXPECT_EQ(observer_->last_warning.reason.detail, "no");
    failed = 0;  // after a success, or with another lease
    if (lease.held()) engine_->advance(20s);
    EXPECT_EQ(observer_->count("warning x") - warned, row.warnings + (lease.held() ? 1U : 0U));
  }
}

// --- Loss ------------------------------------------------------------------------------------------------------------

// When: renewal_schedule_test.cpp.
TEST_F(HeldLeaseTest, LeaseWithoutARenewal_IsLostAndNotReleased) {
  confirm_releases();
  for (const bool renew : {true, false}) {  // without an answer
    service_->released.clear();
    const Lease lease = hold({.renew = renew});
    const TimePoint end = lease.valid_until();
    std::optional<TimePoint> signalled;
    const std::stop_callback on_lost(lease.lost(), [&] { signalled = now(); });
    engine_->advance(60s);
    EXPECT_EQ(service_->renewals_asked, 1U);
    EXPECT_LT(signalled.value(), end);
    EXPECT_EQ(lease.valid_until(), end);
    EXPECT_EQ(observer_->last_lost.reason.code, errc::lost);
    EXPECT_TRUE(service_->released.empty()) << "the service frees it by itself";
  }
  EXPECT_EQ(stats().lost, 2U);
  EXPECT_EQ(observer_->count("lost x"), 2U);
}

// The process was suspended past the lease, or the engine had read the clock before the program did, and writes or
// renews afterwards.
// Shows: known-end
TEST_F(HeldLeaseTest, LossSeenByTheProgram_IsFinal) {
  answer_renewals();
  confirm_releases();
  for (const bool by_clock : {false, true}) {
    const Lease lease = hold();
    if (by_clock) {
      engine_->manual_clock().advance(31s);
      EXPECT_FALSE(lease.held()) << "nothing has run yet";
      EXPECT_TRUE(lease.lost().stop_requested()) << "seen at once by whoever asks";
      LeaseRecord::of(lease)->extend(now() + 30s);
    } else {
      ASSERT_TRUE(LeaseRecord::of(lease)->mark_lost());
    }
    engine_->advance(60s);
    EXPECT_FALSE(lease.held());
    EXPECT_TRUE(lease.lost().stop_requested());
    EXPECT_EQ(service_->renewals_asked, 0U) << "what is over is not renewed";
  }
  EXPECT_EQ(stats().lost, 2U) << "and the core has noticed";
  EXPECT_EQ(observer_->count("lost x"), 2U);
}

// --- Sessions --------------------------------------------------------------------------------------------------------

TEST_F(SessionLeaseTest, ExtendedSession_ExtendsTheLeaseUntilItsLoss) {
  const Lease lease = hold();
  for (int i = 0; i < 100; ++i) {
    engine_->advance(10s);
    ASSERT_TRUE(lease.held());
    extend(lease, lease_valid_until(now(), 30s));
    extend(lease, now() + 1s);
    ASSERT_EQ(lease.valid_until(), lease_valid_until(now(), 30s));
  }
  EXPECT_EQ(service_->renewals_asked, 0U);
  EXPECT_EQ(observer_->count("renewed x"), 0U) << "no request of its own, so no latency";
  engine_->advance(30s);
  EXPECT_FALSE(lease.held());
  EXPECT_TRUE(lease.lost().stop_requested());
  extend(lease, now() + 30s);
  EXPECT_FALSE(lease.held());
}

TEST_F(SessionLeaseTest, LostSession_LosesTheLeaseOnceWithAReason) {
  for (const Failure& why : {Failure{errc::lost, "the session expired: \"x\""}, Failure{}}) {
    const auto losses = stats().lost;
    const Lease lease = hold();
    lose(lease, why);
    EXPECT_TRUE(lease.lost().stop_requested());
    EXPECT_FALSE(lease.held());
    EXPECT_EQ(observer_->last_lost.reason.code, errc::lost);
    EXPECT_NE(observer_->last_lost.reason.detail.find("\"x\""), std::string::npos);
    lose(lease, {errc::lost, "again"});
    EXPECT_EQ(stats().lost, losses + 1);
  }
  task([&] {
    service_->host().lost(OwnerId(1, 2), {errc::lost, ""});
    service_->host().extended(OwnerId(1, 2), now() + 1h);
  });
  EXPECT_EQ(stats().lost, 2U) << "news of unknown owners are ignored";
}

TEST_F(SessionLeaseTest, FixedLength_IsExtendedUpToItsEndAndReleased) {
  confirm_releases();
  for (const auto length : {10s, 60s}) {
    const TimePoint end = now() + length;
    const auto outcome = acquire({.lease = length, .renew = false});
    Grant grant = service_->grant_of(last().request);
    grant.valid_until = std::min(grant.valid_until, lease_valid_until(now(), 20s));
    task([&] { last().grant(grant); });
    service_->released.clear();
    while (now() + 5s < end) {
      engine_->advance(5s);
      extend(outcome->lease, lease_valid_until(now(), 20s));
      ASSERT_TRUE(outcome->lease.held());
      EXPECT_LE(outcome->lease.valid_until(), end);
    }
    engine_->advance(5s);
    EXPECT_FALSE(outcome->lease.held());
    EXPECT_TRUE(outcome->lease.lost().stop_requested());
    EXPECT_EQ(service_->released.size(), 1U) << "nobody else would free it";
  }
}

// --- Processes -------------------------------------------------------------------------------------------------------

TEST_F(ProcessLeaseTest, Lease_DoesNotExpireUnlessItsLengthIsFixed) {
  const Lease lease = hold();
  EXPECT_EQ(lease.valid_until(), TimePoint::max());
  EXPECT_EQ(engine_->pending_timers(), 0U);
  engine_->advance(std::chrono::hours(24 * 365));
  EXPECT_TRUE(lease.held());
  Lease fixed = hold({.lease = 10s, .renew = false}, "y");
  EXPECT_EQ(fixed.valid_until(), now() + 10s);
  engine_->advance(10s);
  EXPECT_FALSE(fixed.held());
  EXPECT_TRUE(fixed.lost().stop_requested());
  ASSERT_EQ(service_->released.size(), 1U);
  EXPECT_FALSE(release(fixed)->was_ours);
  EXPECT_EQ(service_->released.size(), 1U) << "not twice";
}

// The program's release has begun, but the timer that ends the lease runs before the release's task.
TEST_F(ProcessLeaseTest, ReleaseAtTheFixedEnd_IsSentOnce) {
  Lease lease = hold({.lease = 10s, .renew = false});
  std::vector<bool> answers;
  in_task_after(9s, [&] { lease.async_release([&](std::error_code, bool was_ours) { answers.push_back(was_ours); }); });
  engine_->sleep_through(lease.valid_until() - now() - 1ns);
  EXPECT_EQ(answers, std::vector{true});
  EXPECT_EQ(service_->released.size(), 1U);
  EXPECT_EQ(stats().lost, 0U);
}

TEST_F(ProcessLeaseTest, LeaseOfFixedLength_IsReleasedOnceByTheClose) {
  const Lease lease = hold({.lease = 10s, .renew = false});
  close();  // the fake refuses a second release
  EXPECT_FALSE(lease.held());
  EXPECT_TRUE(lease.lost().stop_requested());
  EXPECT_EQ(service_->released.size(), 1U);
}

}  // namespace
}  // namespace dlock::detail
