// Closing a client in the middle of everything.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
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
};

TEST_F(ClosingTest, WaitsEndWithClosed_LeasesAreLostAndReleased_WhatIsAnsweredAfterwardsIsHarmless) {
  confirm_releases();
  std::stop_source stop;
  const auto waiting = acquire({.cancel = stop.get_token()});
  const auto timed = acquire({.wait = 1min});
  busy();
  Lease lease = hold({}, "a");
  const Lease stolen = hold({}, "b");
  lose(stolen);
  const Lease expired = hold({.lease = 1s, .renew = false}, "c");
  engine_->advance(4s);
  const Lease renewing = hold({.lease = 9s}, "d");
  while (service_->renewals.empty()) engine_->advance(100ms);
  const std::stop_token lost = lease.lost();
  const TimePoint start = now();
  const auto core = core_;
  close();
  EXPECT_EQ(engine_->now(), start);
  EXPECT_TRUE(service_->close_asked);
  stop.request_stop();
  engine_->run();
  for (const auto& outcome : {waiting, timed}) {
    EXPECT_EQ(outcome->calls, 1);
    EXPECT_EQ(outcome->failure.code, errc::closed);
  }
  EXPECT_FALSE(lease.held() || renewing.held());
  EXPECT_TRUE(lost.stop_requested() && renewing.lost().stop_requested());
  EXPECT_EQ(observer_->count("lost a"), 1U);
  EXPECT_EQ(observer_->last_lost.reason.code, errc::closed);
  std::vector<std::string> released;
  for (const Grant& grant : service_->released) released.push_back(grant.name);
  std::sort(released.begin(), released.end());
  EXPECT_EQ(released, (std::vector<std::string>{"a", "c", "d"})) << "each once, what was stolen not at all";

  core_ = core;  // and all that comes answers closed at once
  const auto outcome = acquire();
  EXPECT_EQ(outcome->calls, 1);
  EXPECT_EQ(outcome->failure.code, errc::closed);
  const auto answer = ask<LockInfo>(core, [](Backend&, const auto&) { FAIL() << "it is closed"; });
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.failure().code, errc::closed);
  const auto again = release(lease);
  EXPECT_EQ(again->calls, 1);
  EXPECT_FALSE(again->was_ours);
  core_.reset();
}

TEST_F(ClosingTest, TheBackendIsClosedOnlyAfterEveryReleaseWasAnswered) {
  for (const bool inside_the_call : {true, false}) {
    if (!inside_the_call) {
      engine_ = std::make_shared<test::ManualEngine>();
      service_ = std::make_shared<test::FakeService>();
      SetUp();
    }
    std::size_t answered = 0;
    service_->on_close = [&](auto done) {
      EXPECT_EQ(answered, 10U);
      done();
    };
    service_->on_release = [&](auto& release) {
      const auto answer = [&answered, done = release.done] {
        ++answered;
        done({.status = ReleaseStatus::released});
      };
      if (inside_the_call) return answer();
      (void)engine_->schedule(now() + 100ms * service_->released.size(), answer);
    };
    std::vector<Lease> leases;
    for (int i = 0; i < 10; ++i) leases.push_back(hold({}, std::to_string(i)));
    const auto under_way = release(leases.front());
    const TimePoint start = now();
    close();
    EXPECT_EQ(engine_->now(), start + (inside_the_call ? 0s : 1s));
    EXPECT_EQ(under_way->calls, 1);
    EXPECT_TRUE(under_way->was_ours);
    leases.clear();
  }
}

TEST_F(ClosingTest, ABackendOrAReleaseThatNeverAnswersHoldsItUpForTheCloseTimeoutOnly) {
  const Lease lease = hold();
  std::shared_ptr<Outcome> during;
  in_task_after(1s, [&] { during = acquire({}, "y"); });
  const TimePoint start = now();
  close();
  EXPECT_EQ(engine_->now(), start + 2s);
  EXPECT_FALSE(service_->close_asked) << "not before the releases are done";
  ASSERT_TRUE(during);
  EXPECT_EQ(during->failure.code, errc::closed);
  EXPECT_EQ(service_->contends.size(), 1U);
  service_->releases[0].done({.status = ReleaseStatus::released});  // after the close

  engine_ = std::make_shared<test::ManualEngine>();
  service_ = std::make_shared<test::FakeService>();
  SetUp();
  service_->on_close = [](auto) {};
  close();
  EXPECT_EQ(engine_->now(), start + 2s);
}

// The handler runs exactly once; one that holds its own lease would keep all of the client for ever.
TEST_F(ClosingTest, AReleaseThatTheServiceDoesNotConfirmInTimeIsAnsweredByTheClose) {
  const std::weak_ptr<ClientCore> weak = core_;
  int calls = 0;
  std::error_code error;
  {
    const auto lease = std::make_shared<Lease>(hold());
    lease->async_release([&, lease](std::error_code ec, bool was_ours) {
      ++calls;
      error = ec;
      EXPECT_FALSE(was_ours);
    });
  }
  close();
  engine_->run();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(error, errc::ambiguous);
  service_->releases[0].done({.status = ReleaseStatus::released});
  engine_->run();
  EXPECT_EQ(calls, 1);
  service_->releases.clear();
  EXPECT_TRUE(weak.expired());
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

TEST_F(ClosingTest, ClosingInsideAHandlerEndsTheWaitsAndWhenTheReleasesAreDone) {
  const Lease lease = hold();
  const auto outcome = acquire({}, "y");
  core_->context().notifier->complete([&] { core_->close(); });
  engine_->run();
  EXPECT_EQ(outcome->calls, 1);
  EXPECT_EQ(outcome->failure.code, errc::closed);
  EXPECT_FALSE(engine_->stopped());
  task([&] { service_->releases[0].done({.status = ReleaseStatus::released}); });
  EXPECT_TRUE(engine_->stopped());
  EXPECT_FALSE(service_->has_backend());
  EXPECT_EQ(engine_->pending_timers(), 0U);
  core_.reset();
}

}  // namespace
}  // namespace dlock::detail
