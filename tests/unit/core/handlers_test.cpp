// Where and how the program's own code is called: completion handlers, observers, lost() callbacks.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/api/lock_impl.hpp"
#include "tests/support/core_fixture.hpp"

namespace dlock::detail {
namespace {

using namespace std::chrono_literals;

class HandlersTest : public test::CoreTest {
 protected:
  void SetUp() override {
    open();
    service_->answer_everything();
  }
};

TEST_F(HandlersTest, UserCodeRunsOutsideTasksInTheOrderOfTheCalls) {
  std::vector<int> order;
  for (int i = 0; i < 5; ++i) {
    core_->context().notifier->complete([&, i] {
      order.push_back(i);
      EXPECT_FALSE(engine_->inside_task());
      EXPECT_TRUE(engine_->must_not_block());
    });
  }
  EXPECT_TRUE(order.empty()) << "never inside the call";
  engine_->run();
  EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4}));
}

TEST_F(HandlersTest, TheObserverIsToldOutsideTasksInTheOrderOfTheEvents) {
  observer_->on_event = [&] { EXPECT_FALSE(engine_->inside_task()); };
  {
    Lease lease = hold();
    engine_->advance(12s);
    const auto released = release(lease);
  }
  task([&] {
    service_->host().connection({ConnectionEvent::State::reconnecting, {errc::unavailable, "gone"}});
    service_->host().connection({ConnectionEvent::State::connected, {}});
    service_->host().warn({"", {errc::unavailable, "unsafe setting"}});
  });
  EXPECT_EQ(observer_->events(), (std::vector<std::string>{"acquired x", "renewed x", "released x", "reconnecting",
                                                           "connected", "warning "}));
  EXPECT_EQ(stats().reconnects, 1U);
}

TEST_F(HandlersTest, TheAcquiredEventTellsHowLongItTook) {
  service_->on_contend = nullptr;
  const auto outcome = acquire();
  engine_->advance(7s);
  grant(service_->last_contend());
  EXPECT_EQ(observer_->last_acquired.wait, 7s);
  EXPECT_EQ(observer_->last_acquired.token, FencingToken(1));
}

TEST_F(HandlersTest, AWaitThatCannotReachTheServiceIsWarnedOfOnceForEachKindOfTrouble) {
  service_->on_contend = nullptr;
  const auto outcome = acquire();
  for (int i = 0; i < 5; ++i) task([&] { service_->last_contend().unreachable(); });
  EXPECT_EQ(observer_->count("warning x"), 1U);
  EXPECT_EQ(observer_->last_warning.reason.code, errc::unavailable);
  task([&] { service_->last_contend().unreachable(errc::ambiguous); });
  EXPECT_EQ(observer_->count("warning x"), 2U);
}

TEST_F(HandlersTest, AThrowingHandlerIsCountedAndReportedAndDoesNoHarm) {
  core_->context().notifier->complete([] { throw std::runtime_error("oops"); });
  core_->context().notifier->complete([] { throw 42; });
  engine_->run();
  EXPECT_EQ(stats().callback_exceptions, 2U);
  EXPECT_EQ(observer_->count("warning "), 2U);
  const Lease lease = hold();
  EXPECT_TRUE(lease.held());
}

TEST_F(HandlersTest, AThrowingObserverIsCountedOnly) {
  observer_->on_event = [] { throw std::runtime_error("oops"); };
  const Lease lease = hold();
  engine_->run();
  EXPECT_TRUE(lease.held());
  EXPECT_EQ(stats().callback_exceptions, 2U) << "the event, and the warning about it";
}

TEST_F(HandlersTest, LostCallbacksRunOutsideTasks) {
  const Lease lease = hold();
  bool called = false;
  const std::stop_callback on_lost(lease.lost(), [&] {
    called = true;
    EXPECT_FALSE(engine_->inside_task());
    EXPECT_FALSE(lease.held());
  });
  task([&] { service_->host().lost(lease.owner(), {errc::lost, ""}); });
  EXPECT_TRUE(called);
}

TEST_F(HandlersTest, LostCallbacksRunBeforeAllEventsThatWait) {
  const Lease lease = hold();
  std::vector<std::string> order;
  const std::stop_callback on_lost(lease.lost(), [&] { order.emplace_back("lost()"); });
  observer_->on_event = [&] { order.push_back(observer_->events().back()); };
  task([&] {
    for (int i = 0; i < 3; ++i) service_->host().warn({"", {errc::unavailable, "unsafe setting"}});
    core_->context().notifier->complete([&] { order.emplace_back("completion"); });
    service_->host().lost(lease.owner(), {errc::lost, ""});
  });
  EXPECT_EQ(order, (std::vector<std::string>{"lost()", "completion", "warning ", "warning ", "warning ", "lost x"}));
}

TEST_F(HandlersTest, EventsThatWaitAreBoundedAndWhatIsDroppedIsCountedAndTold) {
  constexpr std::size_t most = 16'384;
  std::size_t completions = 0;
  EXPECT_TRUE(engine_->dispatch([&] {
    for (std::size_t i = 0; i < most + 5; ++i) {
      service_->host().warn({"", {errc::unavailable, "unsafe setting"}});
      core_->context().notifier->complete([&] { ++completions; });
    }
  }));
  EXPECT_EQ(stats().events_dropped, 5U);
  engine_->run();
  EXPECT_EQ(observer_->count("warning "), most + 1) << "and one of what was dropped";
  EXPECT_EQ(observer_->last_warning.reason.detail, "unsafe setting") << "told at once, not after all that waited";
  EXPECT_EQ(completions, most + 5) << "completions are never dropped";
  const auto told = observer_->count("warning ");
  task([&] { service_->host().warn({"", {errc::unavailable, "later"}}); });
  EXPECT_EQ(observer_->count("warning "), told + 1) << "there is room again";
  EXPECT_EQ(stats().events_dropped, 5U);
}

TEST_F(HandlersTest, AnObserverThatThrowsHearsOfASingleDroppedEventAllTheSame) {
  bool told = false;
  observer_->on_event = [&] {
    const std::string& detail = observer_->last_warning.reason.detail;
    told |= detail.starts_with("1 event") && detail.ends_with("dropped, because the observer cannot keep up");
    if (detail == "unsafe setting") throw std::runtime_error("oops");
  };
  EXPECT_TRUE(engine_->dispatch([&] {
    for (std::size_t i = 0; i < 16'384 + 1; ++i) service_->host().warn({"", {errc::unavailable, "unsafe setting"}});
  }));
  engine_->run();
  EXPECT_TRUE(told);
}

// Else what passes its tests on a backend that answers at once would fail on a service.
TEST_F(HandlersTest, ABlockingAcquireInsideAHandlerIsRefusedOnEveryBackendAndRequestsNothing) {
  for (const bool immediate : {false, true}) {
    if (!immediate) service_->on_contend = nullptr;
    for (const Duration wait : {Duration(), Duration(5s), forever}) {
      bool done = false;
      core_->context().notifier->complete([&] {
        const LockImpl lock({core_, "y"});
        const auto [lease, failure] = lock.acquire(Mode::exclusive, {.wait = wait});
        EXPECT_EQ(failure.code, std::errc::resource_deadlock_would_occur);
        EXPECT_FALSE(lease.has_value());
        done = true;
      });
      engine_->run();
      EXPECT_TRUE(done);
    }
    service_->answer_everything();
  }
  EXPECT_TRUE(service_->contends.empty());
  EXPECT_EQ(stats().acquired + stats().waiting + stats().failed, 0U);
}

TEST_F(HandlersTest, WrongOptionsOfABlockingAcquireInsideAHandlerAreReportedFirst) {
  bool done = false;
  core_->context().notifier->complete([&] {
    const LockImpl lock({core_, "y"});
    EXPECT_EQ(lock.acquire(Mode::exclusive, {.wait = -1s}).failure.code, errc::invalid_argument);
    done = true;
  });
  engine_->run();
  EXPECT_TRUE(done);
}

TEST_F(HandlersTest, ABlockingReleaseInsideAHandlerIsRefusedOnEveryBackendAndTheLeaseStaysHeld) {
  for (const bool immediate : {false, true}) {
    Lease lease = hold();
    if (!immediate) service_->on_release = nullptr;
    bool done = false;
    core_->context().notifier->complete([&] {
      std::error_code ec;
      EXPECT_FALSE(lease.release(ec));
      EXPECT_EQ(ec, std::errc::resource_deadlock_would_occur);
      done = true;
    });
    engine_->run();
    EXPECT_TRUE(done);
    EXPECT_TRUE(lease.held());
    EXPECT_TRUE(service_->released.empty());
    service_->answer_everything();
    EXPECT_TRUE(lease.release());
    service_->released.clear();
  }
}

TEST_F(HandlersTest, ReleasingALeaseThatNobodyHasToWaitForWorksInsideAHandler) {
  Lease lost = hold({.lease = 10s, .renew = false});
  engine_->advance(10s);
  bool done = false;
  core_->context().notifier->complete([&] {
    EXPECT_FALSE(lost.release());
    EXPECT_FALSE(lost.release());
    EXPECT_FALSE(Lease().release());
    done = true;
  });
  engine_->run();
  EXPECT_TRUE(done);
}

TEST_F(HandlersTest, DestroyingALeaseInsideAHandlerDoesNotWait) {
  service_->on_release = nullptr;
  std::optional<Lease> lease = hold();
  core_->context().notifier->complete([&] { lease.reset(); });
  const TimePoint start = now();
  engine_->run();
  EXPECT_EQ(now(), start);
  EXPECT_EQ(service_->released.size(), 1U);
}

TEST_F(HandlersTest, HandlersThatAcquireAgainAreNoRecursion) {
  int depth = 0;
  int deepest = 0;
  int rounds = 0;
  std::function<void()> again = [&] {
    deepest = std::max(deepest, ++depth);
    if (++rounds < 10000) {
      start_acquire(core_, {"y"}, {}, [&](AcquireResult result) {
        core_->context().notifier->complete(
            [&again, lease = std::make_shared<Lease>(LeaseRecord::make_lease(result.lease))] {
              *lease = Lease();
              again();
            });
      });
    }
    --depth;
  };
  core_->context().notifier->complete(again);
  engine_->run();
  EXPECT_EQ(rounds, 10000);
  EXPECT_EQ(deepest, 1);
}

TEST_F(HandlersTest, HandlersOfABatchRunEachOnce) {
  service_->on_contend = nullptr;
  std::vector<std::shared_ptr<Outcome>> outcomes;
  for (int i = 0; i < 100; ++i) outcomes.push_back(acquire({}, std::to_string(i)));
  for (const auto& contend : std::vector(service_->contends)) grant(*contend);
  for (const auto& outcome : outcomes) {
    EXPECT_EQ(outcome->calls, 1);
    EXPECT_TRUE(outcome->lease.held());
  }
}

TEST_F(HandlersTest, ASynchronousAcquireWaitsUntilItIsGranted) {
  service_->on_contend = [&](auto& contend) { contend.busy(); };
  Timer timer(*engine_);
  (void)engine_->dispatch([&] {
    timer.arm(now() + 3s,
              [&] { service_->last_contend().grant(service_->grant_of(service_->last_contend().request)); });
  });
  const LockImpl lock({core_, "y"});
  const TimePoint start = now();
  const auto [lease, failure] = lock.acquire(Mode::exclusive, {});
  EXPECT_FALSE(failure.code);
  EXPECT_TRUE(lease.held());
  EXPECT_EQ(now(), start + 3s);
}

TEST_F(HandlersTest, ASynchronousReleaseGivesUpAfterTheResponseTimeout) {
  Lease lease = hold();
  service_->on_release = nullptr;
  const TimePoint start = now();
  std::error_code ec;
  EXPECT_FALSE(lease.release(ec));
  EXPECT_EQ(ec, errc::unavailable);
  EXPECT_LE(now(), start + 2500ms);
  EXPECT_FALSE(lease.held());
}

}  // namespace
}  // namespace dlock::detail
