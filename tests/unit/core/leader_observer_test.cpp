#include "core/client/leader_observer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/core_fixture.hpp"

namespace dlock::detail {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

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
