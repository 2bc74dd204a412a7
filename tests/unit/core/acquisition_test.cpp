#include "core/client/acquisition.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "tests/support/core_fixture.hpp"

namespace dlock::detail {
namespace {

using namespace std::chrono_literals;

class AcquisitionTest : public test::CoreTest {
 protected:
  void SetUp() override { open(); }
};

TEST_F(AcquisitionTest, TheRequestSaysWhatTheBackendNeeds) {
  const auto outcome = acquire({.wait = 5s, .lease = 12s}, "orders/42");
  const LockRequest& request = service_->last_contend().request;
  EXPECT_EQ(request.name, "orders/42");
  EXPECT_EQ(request.lease, 12s);
  EXPECT_TRUE(request.wait);
  EXPECT_NE(request.owner, OwnerId());
  EXPECT_NE(request.holder.find(":test"), std::string::npos);
}

TEST_F(AcquisitionTest, DefaultsAreTheClientsLeaseAndAnUnlimitedWait) {
  const auto outcome = acquire();
  EXPECT_EQ(service_->last_contend().request.lease, 30s);
  EXPECT_TRUE(service_->last_contend().request.wait);
  engine_->advance(std::chrono::hours(24 * 365));
  EXPECT_EQ(outcome->calls, 0);
}

TEST_F(AcquisitionTest, EveryAcquireHasAnOwnerIdOfItsOwn) {
  const auto a = acquire();
  const auto b = acquire();
  EXPECT_NE(service_->contends[0]->request.owner, service_->contends[1]->request.owner);
}

// Or a caller that gave up would find the lock busy with its own last attempt.
TEST_F(AcquisitionTest, WhatTheCallerAsksNextComesAfterItsLastContentionHasGivenUp) {
  int asked_next = 0;
  (void)start_acquire(core_, {"x"}, {.wait = 5s}, [&](const AcquireResult& ended) {
    EXPECT_EQ(ended.failure.code, errc::timed_out);
    EXPECT_TRUE(engine_->dispatch([&] {
      ++asked_next;
      EXPECT_EQ(service_->live_contentions(), 0U);
    }));
  });
  engine_->run();
  task([&] { service_->last_contend().busy(); });
  engine_->advance(5s);
  EXPECT_EQ(asked_next, 1);
}

TEST_F(AcquisitionTest, AGrantIsALease) {
  const auto outcome = acquire();
  EXPECT_EQ(stats().waiting, 1U);
  grant(service_->last_contend());
  ASSERT_EQ(outcome->calls, 1);
  EXPECT_TRUE(outcome->lease.held());
  EXPECT_EQ(outcome->lease.token(), FencingToken(1));
  EXPECT_EQ(outcome->lease.name(), "x");
  EXPECT_EQ(outcome->lease.owner(), service_->last_contend().request.owner);
  EXPECT_EQ(outcome->lease.valid_until(), lease_valid_until(now(), 30s));
  EXPECT_EQ(service_->live_contentions(), 0U);
  EXPECT_EQ(stats().waiting, 0U);
  EXPECT_EQ(stats().acquired, 1U);
  EXPECT_EQ(stats().held, 1U);
}

TEST_F(AcquisitionTest, AGrantFromInsideTheCallIsALease) {
  service_->answer_everything();
  const auto outcome = acquire();
  EXPECT_EQ(outcome->calls, 1);
  EXPECT_TRUE(outcome->lease.held());
  EXPECT_EQ(service_->live_contentions(), 0U);
}

TEST_F(AcquisitionTest, ATryOfABusyLockTimesOutAtOnce) {
  service_->on_contend = [](auto& contend) { contend.busy(); };
  const auto outcome = acquire({.wait = 0s});
  EXPECT_FALSE(service_->last_contend().request.wait);
  ASSERT_EQ(outcome->calls, 1);
  EXPECT_EQ(outcome->failure.code, errc::timed_out);
  EXPECT_FALSE(outcome->lease.has_value());
  EXPECT_EQ(service_->live_contentions(), 0U);
  EXPECT_EQ(stats().busy, 1U);
  EXPECT_EQ(stats().timed_out, 0U);
}

TEST_F(AcquisitionTest, ABusyLockTimesOutAtTheDeadline) {
  const auto outcome = acquire({.wait = 5s});
  const TimePoint start = now();
  task([&] { service_->last_contend().busy(); });
  engine_->advance(5s - 1ns);
  EXPECT_EQ(outcome->calls, 0);
  engine_->advance(1ns);
  ASSERT_EQ(outcome->calls, 1);
  EXPECT_EQ(outcome->failure.code, errc::timed_out);
  EXPECT_EQ(outcome->at, start + 5s);
  EXPECT_EQ(service_->live_contentions(), 0U) << "given up, without residue";
  EXPECT_EQ(stats().timed_out, 1U);
  EXPECT_EQ(stats().busy, 0U);
}

TEST_F(AcquisitionTest, ABusyLockTimesOutAtADeadlineBeforeTheResponseTimeout) {
  const auto outcome = acquire({.wait = 100ms});
  const TimePoint start = now();
  task([&] { service_->last_contend().busy(); });
  engine_->advance(1s);
  ASSERT_EQ(outcome->calls, 1);
  EXPECT_EQ(outcome->failure.code, errc::timed_out);
  EXPECT_EQ(outcome->at, start + 100ms);
}

TEST_F(AcquisitionTest, TheWaitBeginsWithTheCallHoweverLongTheEngineIsBusy) {
  engine_->set_busy(true);
  const auto outcome = acquire({.wait = 5s});
  const auto granted = acquire({.wait = 5s}, "y");
  const TimePoint start = now();
  engine_->manual_clock().advance(4s);
  engine_->set_busy(false);
  engine_->run();
  task([&] { service_->contends[0]->busy(); });
  grant(*service_->contends[1]);
  EXPECT_EQ(observer_->last_acquired.wait, 4s);
  engine_->advance(1s);
  ASSERT_EQ(outcome->calls, 1);
  EXPECT_EQ(outcome->failure.code, errc::timed_out);
  EXPECT_EQ(outcome->at, start + 5s);
}

TEST_F(AcquisitionTest, ASilentServiceIsUnavailableAfterTheResponseTimeout) {
  for (const auto& [wait, end] :
       {std::pair(0ns, 2000ms), std::pair<std::chrono::nanoseconds, std::chrono::milliseconds>(500ms, 2000ms),
        std::pair<std::chrono::nanoseconds, std::chrono::milliseconds>(5s, 5000ms)}) {
    const TimePoint start = now();
    const auto outcome = acquire({.wait = wait});
    engine_->advance(end - 1ns);
    EXPECT_EQ(outcome->calls, 0);
    engine_->advance(1ns);
    ASSERT_EQ(outcome->calls, 1);
    EXPECT_EQ(outcome->failure.code, errc::unavailable);
    EXPECT_EQ(outcome->at, start + end);
    EXPECT_EQ(service_->live_contentions(), 0U);
  }
  EXPECT_EQ(stats().failed, 3U);
}

TEST_F(AcquisitionTest, AnUnreachableServiceIsReportedAtTheDeadline) {
  const auto outcome = acquire({.wait = 5s});
  task([&] { service_->last_contend().unreachable(); });
  engine_->advance(5s - 1ns);
  EXPECT_EQ(outcome->calls, 0);
  engine_->advance(1ns);
  ASSERT_EQ(outcome->calls, 1);
  EXPECT_EQ(outcome->failure.code, errc::unavailable);
  EXPECT_EQ(outcome->failure.detail, "out of reach");
}

TEST_F(AcquisitionTest, TheObserverHearsOncePerTroubleThatAWaitCannotReachTheService) {
  const auto outcome = acquire({}, "a");
  const auto say = [&](const Failure& why) {
    task([&] { service_->last_contend().report([&](GrantSink& sink) { sink.unreachable(why); }); });
    engine_->run();
  };
  say({errc::unavailable, "refused"});
  say({errc::unavailable, "refused"});
  EXPECT_EQ(observer_->count("warning a"), 1U);
  EXPECT_EQ(observer_->last_warning.reason.detail, "refused");
  say({errc::unavailable, "too many open files"});
  EXPECT_EQ(observer_->count("warning a"), 2U);
  task([&] { service_->last_contend().busy(); });
  say({errc::unavailable, "too many open files"});
  EXPECT_EQ(observer_->count("warning a"), 3U) << "it had been reached in between";
  EXPECT_EQ(outcome->calls, 0);
}

TEST_F(AcquisitionTest, TheLastNewsIsReported) {
  const auto outcome = acquire({.wait = 5s});
  task([&] { service_->last_contend().unreachable(); });
  engine_->advance(1s);
  task([&] { service_->last_contend().busy(); });
  engine_->advance(4s);
  EXPECT_EQ(outcome->failure.code, errc::timed_out);
}

TEST_F(AcquisitionTest, AnAnswerAfterTheWaitButWithinTheResponseTimeoutStillCounts) {
  const auto granted = acquire({.wait = 100ms}, "a");
  const auto busy = acquire({.wait = 100ms}, "b");
  engine_->advance(1s);
  EXPECT_EQ(granted->calls, 0);
  grant(*service_->contends[0]);
  EXPECT_TRUE(granted->lease.held());
  task([&] { service_->contends[1]->busy(); });
  EXPECT_EQ(busy->failure.code, errc::timed_out);
}

TEST_F(AcquisitionTest, AGrantAtTheInstantOfTheDeadlineWins) {
  const auto outcome = acquire({.wait = 5s});
  task([&] { service_->last_contend().busy(); });
  Timer timer(*engine_);
  task([&] {
    timer.arm(now() + 5s,
              [&] { service_->last_contend().grant(service_->grant_of(service_->last_contend().request)); });
  });
  engine_->advance(5s);
  ASSERT_EQ(outcome->calls, 1);
  EXPECT_TRUE(outcome->lease.held());
}

TEST_F(AcquisitionTest, AGrantAfterGivingUpIsReleased) {
  const auto outcome = acquire({.wait = 0s});
  auto contend = service_->contends.back();
  GrantSink* const sink = contend->sink;
  const Grant late = service_->grant_of(contend->request);
  // The backend answers in the same turn in which the deadline passes, before the core has dropped the contention.
  engine_->manual_clock().advance(2s);
  while (outcome->calls == 0) ASSERT_TRUE(engine_->run_one());
  ASSERT_NE(contend->sink, nullptr);
  (void)engine_->dispatch([&] { sink->granted(late); });
  engine_->run();
  EXPECT_EQ(outcome->calls, 1);
  EXPECT_EQ(outcome->failure.code, errc::unavailable);
  ASSERT_EQ(service_->released.size(), 1U);
  EXPECT_EQ(service_->released[0].owner, contend->request.owner);
  EXPECT_EQ(stats().held, 0U);
}

TEST_F(AcquisitionTest, ATryWhoseLeaseIsOverOnArrivalIsReleasedAndReported) {
  const auto outcome = acquire({.wait = 0s, .lease = 1s});
  const Grant stale = service_->grant_of(service_->last_contend().request);
  engine_->advance(1s);
  task([&] { service_->last_contend().grant(stale); });
  ASSERT_EQ(outcome->calls, 1);
  EXPECT_EQ(outcome->failure.code, errc::unavailable);
  EXPECT_EQ(service_->released.size(), 1U);
  EXPECT_EQ(stats().held, 0U);
}

TEST_F(AcquisitionTest, AWaitWhoseLeaseIsOverOnArrivalStartsOverWithAnotherOwner) {
  const auto outcome = acquire({.wait = 10s, .lease = 1s});
  const Grant stale = service_->grant_of(service_->last_contend().request);
  engine_->advance(1s);
  task([&] { service_->last_contend().grant(stale); });
  EXPECT_EQ(outcome->calls, 0);
  ASSERT_EQ(service_->contends.size(), 2U);
  EXPECT_EQ(service_->contends[0]->sink, nullptr);
  EXPECT_NE(service_->contends[1]->request.owner, stale.owner) << "a late release must not touch the new grant";
  ASSERT_EQ(service_->released.size(), 1U);
  EXPECT_EQ(service_->released[0].owner, stale.owner);
  grant(service_->last_contend());
  ASSERT_EQ(outcome->calls, 1);
  EXPECT_TRUE(outcome->lease.held());
}

TEST_F(AcquisitionTest, StartingOverDoesNotProlongTheWait) {
  const auto outcome = acquire({.wait = 5s, .lease = 1s});
  const TimePoint start = now();
  for (int i = 0; i < 4; ++i) {
    const Grant stale = service_->grant_of(service_->last_contend().request);
    engine_->advance(1s);
    task([&] { service_->last_contend().grant(stale); });
  }
  EXPECT_EQ(service_->contends.size(), 5U);
  engine_->advance(10s);
  ASSERT_EQ(outcome->calls, 1);
  EXPECT_EQ(outcome->at, start + 5s);
  EXPECT_EQ(service_->live_contentions(), 0U);
}

TEST_F(AcquisitionTest, StartingOverAfterTheWaitEndsWithTheAnswerFromInsideTheCall) {
  const auto outcome = acquire({.wait = 100ms, .lease = 1s});
  const Grant stale = service_->grant_of(service_->last_contend().request);
  engine_->advance(1s);
  service_->on_contend = [](auto& contend) { contend.busy(); };
  task([&] { service_->last_contend().grant(stale); });
  ASSERT_EQ(outcome->calls, 1);
  EXPECT_EQ(outcome->failure.code, errc::timed_out);
  EXPECT_EQ(service_->live_contentions(), 0U);
}

TEST_F(AcquisitionTest, StartingOverAfterTheWaitABusyLockThatIsGrantedInsideTheSameCallIsALease) {
  const auto outcome = acquire({.wait = 100ms, .lease = 1s});
  const Grant stale = service_->grant_of(service_->last_contend().request);
  engine_->advance(1s);
  service_->on_contend = [this](auto& contend) {
    contend.busy();
    contend.grant(service_->grant_of(contend.request));
  };
  task([&] { service_->last_contend().grant(stale); });
  ASSERT_EQ(outcome->calls, 1);
  EXPECT_TRUE(outcome->lease.held()) << outcome->failure.detail;
}

TEST_F(AcquisitionTest, CancellingBetweenAStaleGrantAndTheNewStartEndsTheWait) {
  std::stop_source stop;
  const auto outcome = acquire({.wait = 5s, .lease = 1s, .cancel = stop.get_token()});
  const Grant stale = service_->grant_of(service_->last_contend().request);
  engine_->advance(1s);
  stop.request_stop();
  (void)engine_->dispatch([&] { service_->last_contend().grant(stale); });
  engine_->run();
  ASSERT_EQ(outcome->calls, 1);
  EXPECT_EQ(outcome->failure.code, errc::cancelled);
  EXPECT_EQ(service_->contends.size(), 1U);
}

TEST_F(AcquisitionTest, AFinalFailureIsPassedOn) {
  for (const errc code : {errc::access_denied, errc::protocol, errc::unsupported, errc::ambiguous}) {
    const auto outcome = acquire();
    task([&] { service_->last_contend().fail({code, "the service's words"}); });
    ASSERT_EQ(outcome->calls, 1);
    EXPECT_EQ(outcome->failure.code, code);
    EXPECT_EQ(outcome->failure.detail, "the service's words");
    EXPECT_EQ(service_->live_contentions(), 0U);
  }
}

TEST_F(AcquisitionTest, AFailureWithoutACodeIsNeverTakenForSuccess) {
  const auto outcome = acquire();
  task([&] { service_->last_contend().fail({}); });
  ASSERT_EQ(outcome->calls, 1);
  EXPECT_TRUE(outcome->failure.code);
  EXPECT_FALSE(outcome->lease.has_value());
  const auto silent = acquire({.wait = 1s});
  task([&] { service_->last_contend().report([](GrantSink& sink) { sink.unreachable({}); }); });
  engine_->advance(2s);
  ASSERT_EQ(silent->calls, 1);
  EXPECT_TRUE(silent->failure.code);
}

TEST_F(AcquisitionTest, ReportsAfterTheFinalOneAreIgnored) {
  service_->on_contend = [&](auto& contend) {
    contend.fail({errc::access_denied, ""});
    contend.busy();
    contend.unreachable();
    contend.fail({errc::protocol, ""});
  };
  const auto outcome = acquire();
  EXPECT_EQ(outcome->calls, 1);
  EXPECT_EQ(outcome->failure.code, errc::access_denied);
}

TEST_F(AcquisitionTest, NegativeAndSenselessOptionsAreRefusedBeforeAnythingIsSent) {
  using Seconds = std::chrono::duration<double>;
  const AcquireOptions bad[] = {
      {.wait = -1ns},
      {.wait = std::chrono::nanoseconds::min()},
      {.wait = Seconds(std::numeric_limits<double>::quiet_NaN())},
      {.lease = 0s},
      {.lease = -1s},
      {.lease = 9ms},
      {.lease = 25h},
      {.lease = forever},
      {.lease = Seconds(std::numeric_limits<double>::quiet_NaN())},
  };
  for (const auto& options : bad) {
    const auto outcome = acquire(options);
    ASSERT_EQ(outcome->calls, 1) << "right away";
    EXPECT_EQ(outcome->failure.code, errc::invalid_argument);
    const bool names_the_option = outcome->failure.detail.find(options.lease ? "lease" : "wait") != std::string::npos;
    EXPECT_TRUE(names_the_option) << outcome->failure.detail;
  }
  EXPECT_TRUE(service_->contends.empty());
}

TEST_F(AcquisitionTest, TheBoundsOfALeaseThemselvesAreGood) {
  service_->answer_everything();
  for (const Duration lease : {Duration(10ms), Duration(24h)}) {
    const auto outcome = acquire({.lease = lease});
    EXPECT_TRUE(outcome->lease.held());
  }
}

TEST_F(AcquisitionTest, CancelledBeforehandNothingIsSent) {
  std::stop_source stop;
  stop.request_stop();
  const auto outcome = acquire({.cancel = stop.get_token()});
  ASSERT_EQ(outcome->calls, 1);
  EXPECT_EQ(outcome->failure.code, errc::cancelled);
  EXPECT_TRUE(service_->contends.empty());
  EXPECT_EQ(stats().cancelled, 1U);
  EXPECT_EQ(stats().waiting, 0U);
}

TEST_F(AcquisitionTest, CancellingEndsTheWait) {
  std::stop_source stop;
  const auto outcome = acquire({.cancel = stop.get_token()});
  task([&] { service_->last_contend().busy(); });
  stop.request_stop();
  EXPECT_EQ(outcome->calls, 0) << "never inside request_stop()";
  engine_->run();
  ASSERT_EQ(outcome->calls, 1);
  EXPECT_EQ(outcome->failure.code, errc::cancelled);
  EXPECT_EQ(service_->live_contentions(), 0U);
}

TEST_F(AcquisitionTest, CancellingInsideTheCallToTheBackendCounts) {
  std::stop_source stop;
  service_->on_contend = [&](auto&) { stop.request_stop(); };
  const auto outcome = acquire({.cancel = stop.get_token()});
  engine_->run();
  ASSERT_EQ(outcome->calls, 1);
  EXPECT_EQ(outcome->failure.code, errc::cancelled);
}

TEST_F(AcquisitionTest, CancellingAfterTheGrantHasNoEffect) {
  std::stop_source stop;
  const auto outcome = acquire({.cancel = stop.get_token()});
  grant(service_->last_contend());
  stop.request_stop();
  engine_->run();
  EXPECT_EQ(outcome->calls, 1);
  EXPECT_TRUE(outcome->lease.held());
}

TEST_F(AcquisitionTest, AGrantBeforeTheCancellationArrivesWins) {
  std::stop_source stop;
  const auto outcome = acquire({.cancel = stop.get_token()});
  engine_->set_busy(true);
  (void)engine_->dispatch(
      [&] { service_->last_contend().grant(service_->grant_of(service_->last_contend().request)); });
  stop.request_stop();
  engine_->set_busy(false);
  engine_->run();
  ASSERT_EQ(outcome->calls, 1);
  EXPECT_TRUE(outcome->lease.held());
}

TEST_F(AcquisitionTest, TheCancelledWaitKeepsNoTimer) {
  std::stop_source stop;
  const auto outcome = acquire({.wait = 5s, .cancel = stop.get_token()});
  EXPECT_EQ(engine_->pending_timers(), 1U);
  stop.request_stop();
  engine_->run();
  EXPECT_EQ(engine_->pending_timers(), 0U);
}

TEST_F(AcquisitionTest, ManyWaitsEndEachAtItsOwnTime) {
  std::vector<std::shared_ptr<Outcome>> outcomes;
  const TimePoint start = now();
  for (int i = 1; i <= 1000; ++i) outcomes.push_back(acquire({.wait = std::chrono::seconds(i * 7 % 1000 + 3)}));
  engine_->advance(2000s);
  for (int i = 1; i <= 1000; ++i) {
    const auto& outcome = outcomes[static_cast<std::size_t>(i - 1)];
    ASSERT_EQ(outcome->calls, 1);
    EXPECT_EQ(outcome->at, start + std::chrono::seconds(i * 7 % 1000 + 3));
  }
  EXPECT_EQ(stats().waiting, 0U);
}

}  // namespace
}  // namespace dlock::detail
