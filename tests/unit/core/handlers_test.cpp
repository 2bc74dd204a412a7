// Where and how the program's own code is called: completion handlers, observers, lost() callbacks, and observers of
// elections.
#include <gmock/gmock.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <stop_token>

#include "core/client/leader_observer.hpp"
#include "tests/support/core_fixture.hpp"

namespace dlock::detail {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

class HandlersTest : public test::CoreTest {
 protected:
  void SetUp() override {
    open();
    service_->answer_everything();
  }
};

TEST_F(HandlersTest, Events_AreReportedOutsideTasksInOrder) {
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

TEST_F(HandlersTest, ExceptionOfUserCode_IsCountedAndReported) {
  core_->context().notifier->complete([] { throw std::runtime_error("oops"); });
  core_->context().notifier->complete([] { throw 42; });
  engine_->run();
  EXPECT_EQ(stats().callback_exceptions, 2U);
  EXPECT_EQ(observer_->count("warning "), 2U);
  observer_->on_event = [] { throw std::runtime_error("oops"); };
  const Lease lease = hold();
  engine_->run();
  EXPECT_TRUE(lease.held());
  EXPECT_EQ(stats().callback_exceptions, 4U) << "the event, and the warning about it";
}

TEST_F(HandlersTest, LossCallbacks_RunBeforePendingEvents) {
  const Lease lease = hold();
  std::vector<std::string> order;
  const std::stop_callback on_lost(lease.lost(), [&] {
    order.emplace_back("lost()");
    EXPECT_FALSE(engine_->inside_task());
    EXPECT_FALSE(lease.held());
  });
  observer_->on_event = [&] { order.push_back(observer_->events().back()); };
  task([&] {
    for (int i = 0; i < 3; ++i) service_->host().warn({"", {errc::unavailable, "unsafe setting"}});
    core_->context().notifier->complete([&] { order.emplace_back("completion"); });
    service_->host().lost(lease.owner(), {errc::lost, ""});
  });
  EXPECT_EQ(order, (std::vector<std::string>{"lost()", "completion", "warning ", "warning ", "warning ", "lost x"}));
}

TEST_F(HandlersTest, PendingEvents_AreBoundedAndDroppedOnesReported) {
  constexpr std::size_t most = 16'384;
  std::size_t completions = 0;
  bool told = false;
  observer_->on_event = [&] {
    const std::string& detail = observer_->last_warning.reason.detail;
    told |= detail.starts_with("5 events") && detail.ends_with("dropped, because the observer cannot keep up");
    if (detail == "unsafe setting") throw std::runtime_error("oops");
  };
  EXPECT_TRUE(engine_->dispatch([&] {
    for (std::size_t i = 0; i < most + 5; ++i) {
      service_->host().warn({"", {errc::unavailable, "unsafe setting"}});
      core_->context().notifier->complete([&] { ++completions; });
    }
  }));
  EXPECT_EQ(stats().events_dropped, 5U);
  engine_->run();
  EXPECT_TRUE(told) << "though the observer throws";
  observer_->on_event = nullptr;
  EXPECT_EQ(completions, most + 5) << "completions are never dropped";
  const auto before = observer_->count("warning ");
  const auto dropped = stats().events_dropped;
  task([&] { service_->host().warn({"", {errc::unavailable, "later"}}); });
  EXPECT_EQ(observer_->count("warning "), before + 1) << "there is room again";
  EXPECT_EQ(stats().events_dropped, dropped);
}

TEST_F(HandlersTest, LeaseInAHandler_IsDestroyedWithoutAWait) {
  Lease lost = hold({.lease = 10s, .renew = false});
  engine_->advance(10s);
  std::optional<Lease> held = hold({}, "y");
  service_->on_release = nullptr;
  const TimePoint start = now();
  core_->context().notifier->complete([&] {
    for (Lease* const lease : {&lost, &lost}) EXPECT_FALSE(lease->release());
    EXPECT_FALSE(Lease().release());
    held.reset();
  });
  engine_->run();
  EXPECT_FALSE(held) << "it ran";
  EXPECT_EQ(now(), start);
  EXPECT_EQ(service_->released.size(), 2U);
}

// --- Observers of elections ------------------------------------------------------------------------------------------

class LeaderObserverTest : public test::CoreTest {
 protected:
  void SetUp() override {
    service_->capabilities.can_inspect = true;
    service_->capabilities.elections = true;
    open();
  }
  void TearDown() override {
    if (observing_) stop();
    CoreTest::TearDown();
  }

  void observe(LeaderObserver::Handler handler = nullptr) {
    if (!handler)
      handler = [this](const std::optional<Leader>& leader) { told_.push_back(leader ? leader->value : ""); };
    observing_ = std::make_shared<LeaderObserver>(core_, "x", std::move(handler));
    observing_->begin();
    engine_->run();
  }
  void stop() {
    std::exchange(observing_, nullptr)->stop();
    engine_->run();
  }
  static LockInfo led_by(const std::string& value, std::uint64_t token = 1) {
    return {.name = "x",
            .held = !value.empty(),
            .holder = "h",
            .token = FencingToken(token),
            .kind = LockKind::election,
            .value = value};
  }
  void answer(Result<LockInfo> answer) {
    ASSERT_EQ(service_->questions.size(), 1U) << "one question at a time";
    const auto done = std::move(service_->questions.back());
    service_->questions.pop_back();
    task([&] { done(std::move(answer)); });
  }

  std::shared_ptr<LeaderObserver> observing_;
  std::vector<std::string> told_;
};

TEST_F(LeaderObserverTest, FirstLeaderAndEachTerm_AreReported) {
  observe();
  EXPECT_THAT(told_, ElementsAre());
  answer(led_by(""));
  EXPECT_THAT(told_, ElementsAre(""));
  for (const LockInfo& info : {led_by("a"), led_by("a"), led_by("a", 2), led_by("b", 3)}) {
    task([&] { service_->change(); });
    answer(info);
  }
  EXPECT_THAT(told_, ElementsAre("", "a", "a", "b")) << "elected again is another term";
  engine_->advance(499ms);
  EXPECT_EQ(service_->asked, 5U);
  engine_->advance(501ms);
  EXPECT_EQ(service_->asked, 6U) << "asked now and then, though nothing changed";
  answer(led_by("c", 4));
  EXPECT_EQ(told_.back(), "c");
}

TEST_F(LeaderObserverTest, ChangeDuringAQuestion_IsAskedAboutAfterwards) {
  observe();
  task([&] { service_->change(); });
  task([&] { service_->change(); });
  EXPECT_EQ(service_->asked, 1U);
  answer(led_by("a"));
  EXPECT_EQ(service_->asked, 2U);
  answer(led_by("b"));
  EXPECT_EQ(service_->asked, 2U);
  EXPECT_THAT(told_, ElementsAre("a", "b"));
}

TEST_F(LeaderObserverTest, SlowProgram_GetsTheNewestLeader) {
  std::vector<Result<LockInfo>> answers{led_by("c"), led_by("b"), led_by("a")};
  service_->on_inspect = [&](const std::string&) {
    Result<LockInfo> next = std::move(answers.back());
    answers.pop_back();
    return next;
  };
  observe();
  task([&] {  // the engine runs handlers after the task
    service_->change();
    service_->change();
  });
  EXPECT_THAT(told_, ElementsAre("a", "c"));
}

TEST_F(LeaderObserverTest, FailedQuestion_IsWarnedOfOnceAndRepeatedLater) {
  observe();
  answer(Failure{errc::unavailable, "out of reach"});
  EXPECT_EQ(observer_->count("warning x"), 1U);
  EXPECT_THAT(observer_->last_warning.reason.detail, HasSubstr("out of reach"));
  engine_->advance(1s);
  task([&] { service_->change(); });
  answer(Failure{errc::unavailable, "out of reach"});
  EXPECT_EQ(service_->asked, 2U) << "what follows a failure is not asked at once";
  EXPECT_EQ(observer_->count("warning x"), 1U);
  engine_->advance(1s);
  answer(led_by("a"));
  EXPECT_THAT(told_, ElementsAre("a"));
  task([&] { service_->change(); });
  answer(Failure{errc::unavailable, "out of reach"});
  EXPECT_EQ(observer_->count("warning x"), 2U);
}

TEST_F(LeaderObserverTest, EndOfTheObserverOrTheClient_StopsQuestions) {
  observe();
  answer(led_by("a"));
  task([&] { service_->change(); });
  stop();
  EXPECT_TRUE(service_->watches.empty());
  EXPECT_EQ(engine_->pending_timers(), 0U);
  answer(led_by("b"));
  engine_->advance(10s);
  EXPECT_EQ(service_->asked, 2U);
  EXPECT_THAT(told_, ElementsAre("a"));
  observe();
  answer(led_by("c"));
  const auto core = core_;
  close();
  stop();
  const auto late = std::make_shared<LeaderObserver>(core, "x", [](const std::optional<Leader>&) { FAIL(); });
  late->begin();
  engine_->run();
  late->stop();
  EXPECT_THAT(told_, ElementsAre("a", "c"));
}

// Its captures are the program's code: no task destroys them, and not before it has returned.
TEST_F(LeaderObserverTest, Handler_MayEndItsObserverOrThrow) {
  const auto capture = [this] {
    return std::shared_ptr<void>(nullptr, [this](void*) { EXPECT_FALSE(engine_->inside_task()); });
  };
  auto captured = capture();
  const std::weak_ptr<void> weak = captured;
  observe([this, captured = std::move(captured), weak](const std::optional<Leader>&) {
    std::exchange(observing_, nullptr)->stop();
    EXPECT_FALSE(weak.expired());
  });
  answer(led_by("a"));
  EXPECT_TRUE(weak.expired());
  EXPECT_TRUE(service_->watches.empty());
  observe([this, captured = capture()](const std::optional<Leader>& leader) {
    told_.push_back(leader->value);
    throw std::runtime_error("no");
  });
  answer(led_by("a"));
  EXPECT_EQ(stats().callback_exceptions, 1U);
  task([&] { service_->change(); });
  answer(led_by("b"));
  EXPECT_THAT(told_, ElementsAre("a", "b"));
}

}  // namespace
}  // namespace dlock::detail
