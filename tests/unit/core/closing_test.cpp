// Closing a client in the middle of everything.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "core/api/question.hpp"
#include "tests/support/core_fixture.hpp"

namespace dlock::detail {
namespace {

using namespace std::chrono_literals;
using ReleaseStatus = ReleaseOutcome::Status;

class ClosingTest : public test::CoreTest {
 protected:
  void SetUp() override { open(); }
  void confirm_releases() {
    service_->on_release = [](auto& release) { release.done({.status = ReleaseStatus::released}); };
  }
};

TEST_F(ClosingTest, AnIdleClientClosesAtOnce) {
  const TimePoint start = now();
  close();
  EXPECT_EQ(engine_->now(), start);
  EXPECT_TRUE(service_->close_asked);
}

TEST_F(ClosingTest, WaitsEndWithClosed) {
  const auto a = acquire();
  const auto b = acquire({.wait = 5s});
  task([&] { service_->last_contend().busy(); });
  close();
  for (const auto& outcome : {a, b}) {
    EXPECT_EQ(outcome->calls, 1);
    EXPECT_EQ(outcome->failure.code, errc::closed);
  }
  EXPECT_EQ(service_->live_contentions(), 0U);
}

TEST_F(ClosingTest, LeasesAreLostAndReleased) {
  confirm_releases();
  const Lease a = hold({}, "a");
  const Lease b = hold({}, "b");
  const std::stop_token lost = a.lost();
  close();
  EXPECT_FALSE(a.held());
  EXPECT_TRUE(lost.stop_requested());
  EXPECT_TRUE(b.lost().stop_requested());
  EXPECT_EQ(service_->released.size(), 2U);
  EXPECT_EQ(observer_->count("lost a"), 1U);
  EXPECT_EQ(observer_->last_lost.reason.code, errc::closed);
}

TEST_F(ClosingTest, TheBackendIsClosedOnlyAfterEveryReleaseWasAskedFor) {
  confirm_releases();  // from inside the call
  std::vector<Lease> leases;
  for (int i = 0; i < 10; ++i) leases.push_back(hold({}, std::to_string(i)));
  std::size_t released_before_close = 0;
  service_->on_close = [&](auto done) {
    released_before_close = service_->released.size();
    done();
  };
  close();
  EXPECT_EQ(released_before_close, 10U);
}

TEST_F(ClosingTest, TheBackendIsClosedOnlyAfterEveryReleaseWasAnswered) {
  const Lease a = hold({}, "a");
  const Lease b = hold({}, "b");
  bool both_answered = false;
  service_->on_close = [&](auto done) {
    EXPECT_TRUE(both_answered);
    done();
  };
  // While close() waits, the answers arrive one after the other.
  Timer first(*engine_);
  Timer second(*engine_);
  (void)engine_->dispatch([&] {
    first.arm(now() + 500ms, [&] { service_->releases[0].done({.status = ReleaseStatus::released}); });
    second.arm(now() + 1s, [&] {
      both_answered = true;
      service_->releases[1].done({.status = ReleaseStatus::released});
    });
  });
  const TimePoint start = now();
  close();
  EXPECT_TRUE(both_answered);
  EXPECT_EQ(engine_->now(), start + 1s);
}

TEST_F(ClosingTest, AReleaseThatIsNeverAnsweredHoldsItUpForTheCloseTimeoutOnly) {
  const Lease lease = hold();
  const TimePoint start = now();
  close();
  EXPECT_EQ(engine_->now(), start + 2s);
  EXPECT_FALSE(service_->close_asked) << "not before the releases are done";
}

TEST_F(ClosingTest, ABackendThatNeverFinishesHoldsItUpForTheCloseTimeoutOnly) {
  service_->on_close = [](auto) {};
  const TimePoint start = now();
  close();
  EXPECT_EQ(engine_->now(), start + 2s);
}

TEST_F(ClosingTest, TheAnswerToAReleaseMayComeAfterTheClose) {
  const Lease lease = hold();
  close();
  ASSERT_EQ(service_->releases.size(), 1U);
  service_->releases[0].done({.status = ReleaseStatus::released});
}

TEST_F(ClosingTest, TheBackendsDestructorMayAnswerWhatIsPending) {
  const Lease lease = hold();
  service_->on_destruction = [&] { service_->releases[0].done({.status = ReleaseStatus::failed}); };
  close();
}

TEST_F(ClosingTest, TheAnswerToAReleaseMayComeWhenNothingIsLeft) {
  const std::weak_ptr<ClientCore> weak = core_;
  {
    const Lease lease = hold();
    close();
  }
  EXPECT_TRUE(weak.expired());
  ASSERT_EQ(service_->releases.size(), 1U);
  service_->releases[0].done({.status = ReleaseStatus::released});
}

TEST_F(ClosingTest, AReleaseUnderWayIsWaitedFor) {
  Lease lease = hold();
  const auto released = release(lease);
  Timer timer(*engine_);
  (void)engine_->dispatch(
      [&] { timer.arm(now() + 1s, [&] { service_->releases[0].done({.status = ReleaseStatus::released}); }); });
  close();
  EXPECT_EQ(released->calls, 1);
  EXPECT_TRUE(released->was_ours);
  EXPECT_EQ(service_->released.size(), 1U);
}

TEST_F(ClosingTest, AnAcquireThatArrivesDuringTheCloseAnswersClosed) {
  const Lease lease = hold();
  std::shared_ptr<Outcome> during;
  Timer timer(*engine_);
  (void)engine_->dispatch([&] { timer.arm(now() + 1s, [&] { during = acquire({}, "y"); }); });
  close();
  ASSERT_TRUE(during);
  EXPECT_EQ(during->calls, 1);
  EXPECT_EQ(during->failure.code, errc::closed);
  EXPECT_EQ(service_->contends.size(), 1U);
}

TEST_F(ClosingTest, AfterwardsEverythingAnswersClosedAtOnce) {
  confirm_releases();
  Lease lease = hold();
  const auto core = core_;
  close();
  core_ = core;
  const auto outcome = acquire();
  EXPECT_EQ(outcome->calls, 1);
  EXPECT_EQ(outcome->failure.code, errc::closed);
  const auto answer = ask<LockInfo>(core, [](Backend&, const auto&) { FAIL() << "it is closed"; });
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.failure().code, errc::closed);
  const auto released = release(lease);
  EXPECT_EQ(released->calls, 1);
  EXPECT_FALSE(released->was_ours);
  core_.reset();
}

TEST_F(ClosingTest, ALeaseMayOutliveItsClient) {
  confirm_releases();
  std::optional<Lease> lease = hold();
  close();
  engine_.reset();
  EXPECT_FALSE(lease->held());
  EXPECT_TRUE(lease->lost().stop_requested());
  EXPECT_EQ(lease->name(), "x");
  EXPECT_EQ(lease->token(), FencingToken(1));
  EXPECT_FALSE(lease->release());
  lease.reset();
}

TEST_F(ClosingTest, ACancellationAfterTheCloseIsHarmless) {
  std::stop_source stop;
  const auto outcome = acquire({.cancel = stop.get_token()});
  close();
  stop.request_stop();
  engine_->run();
  EXPECT_EQ(outcome->calls, 1);
}

TEST_F(ClosingTest, ARenewalThatIsAnsweredAfterTheCloseIsHarmless) {
  confirm_releases();
  const Lease lease = hold();
  engine_->advance(12s);
  ASSERT_EQ(service_->renewals.size(), 1U);
  close();
  EXPECT_FALSE(lease.held());
}

TEST_F(ClosingTest, LostLeasesAreGivenBackOnce) {
  confirm_releases();
  const Lease expired = hold({}, "expired");
  engine_->advance(60s);
  const Lease stolen = hold({}, "stolen");
  task([&] { service_->host().lost(stolen.owner(), {errc::lost, ""}); });
  close();
  ASSERT_EQ(service_->released.size(), 1U);
  EXPECT_EQ(service_->released[0].name, "expired");
}

// --- Inside a handler ------------------------------------------------------------------------------------------------

TEST_F(ClosingTest, ClosingInsideAHandlerDoesNotWait) {
  Lease lease = hold();
  TimePoint inside;
  core_->context().notifier->complete([&] {
    const TimePoint start = engine_->now();
    core_->close();
    EXPECT_EQ(engine_->now(), start);
    inside = start;
  });
  engine_->run();
  EXPECT_FALSE(lease.held());
  EXPECT_FALSE(engine_->stopped()) << "the service is given its time";
  engine_->advance(1s);
  EXPECT_FALSE(engine_->stopped());
  engine_->advance(1s);
  EXPECT_TRUE(engine_->stopped());
  EXPECT_FALSE(service_->has_backend());
  EXPECT_EQ(engine_->now(), inside + 2s);
  EXPECT_EQ(engine_->pending_timers(), 0U);
  const std::weak_ptr<ClientCore> weak = std::exchange(core_, nullptr);
  service_->releases.clear();
  lease = Lease();
  EXPECT_TRUE(weak.expired()) << "nothing is left of it";
}

TEST_F(ClosingTest, ClosingInsideAHandlerEndsWhenTheReleasesAreDone) {
  const Lease lease = hold();
  core_->context().notifier->complete([&] { core_->close(); });
  engine_->run();
  task([&] { service_->releases[0].done({.status = ReleaseStatus::released}); });
  EXPECT_TRUE(engine_->stopped());
  EXPECT_FALSE(service_->has_backend());
  EXPECT_EQ(engine_->pending_timers(), 0U);
  core_.reset();
}

TEST_F(ClosingTest, ClosingInsideAHandlerEndsTheWaits) {
  const auto outcome = acquire();
  core_->context().notifier->complete([&] { core_->close(); });
  engine_->run();
  EXPECT_EQ(outcome->calls, 1);
  EXPECT_EQ(outcome->failure.code, errc::closed);
  EXPECT_TRUE(engine_->stopped());
  core_.reset();
}

TEST_F(ClosingTest, NothingOfACoreIsLeftWhenItsLastOwnerIsGone) {
  confirm_releases();
  const std::weak_ptr<ClientCore> weak = core_;
  auto outcome = acquire();
  {
    Lease lease = hold({}, "y");
    close();
    EXPECT_FALSE(weak.expired()) << "the lease keeps the shell";
  }
  EXPECT_TRUE(weak.expired());
}

}  // namespace
}  // namespace dlock::detail
