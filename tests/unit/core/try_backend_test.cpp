// The ready-made contention, with a service that the test speaks for.
#include <dlock/spi/try_backend.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/manual_engine.hpp"
#include "tests/support/scripted_try_backend.hpp"

namespace dlock {
namespace {

using namespace std::chrono_literals;
using Status = TryOutcome::Status;

using test::ScriptedTryBackend;

class TryBackendTest : public testing::Test {
 protected:
  void contend(bool wait = true) {
    contend(LockRequest{.name = "x", .owner = owner_, .holder = "h", .lease = 30s, .wait = wait});
  }
  void contend(const LockRequest& request) {
    task([&] { contention_ = backend_->contend(request, sink_); });
  }
  void give_up() {
    task([&] { contention_.reset(); });
  }
  void task(const std::function<void()>& f) {
    ASSERT_TRUE(engine_->dispatch(f));
    engine_->run();
  }
  void answer(TryOutcome outcome) {
    ASSERT_FALSE(backend_->tries.empty());
    const auto done = std::move(backend_->tries.back());
    backend_->tries.pop_back();
    task([&] { done(std::move(outcome)); });
  }
  void changed() {
    task([&] {
      backend_->in_changed = true;
      backend_->watches.back()();
      backend_->in_changed = false;
    });
  }
  [[nodiscard]] TryOutcome granted() const {
    return {.status = Status::granted,
            .grant = {"x", owner_, FencingToken(7), lease_valid_until(engine_->now(), 30s), 30s}};
  }
  static TryOutcome busy() { return {.status = Status::busy}; }
  static TryOutcome failed(errc code) { return {.status = Status::failed, .failure = {code, "no"}}; }
  void TearDown() override {
    task([&] {
      contention_.reset();
      backend_.reset();
    });
    EXPECT_EQ(engine_->pending_timers(), 0U);
  }

  const OwnerId owner_{1, 2};
  std::shared_ptr<test::ManualEngine> engine_ = std::make_shared<test::ManualEngine>();
  test::SilentHost host_{*engine_};
  std::unique_ptr<ScriptedTryBackend> backend_ = std::make_unique<ScriptedTryBackend>(host_, TryPolicy{});
  test::RecordingSink sink_;
  std::unique_ptr<Contention> contention_;
};

using Reports = std::vector<std::string>;

TEST_F(TryBackendTest, AGrantIsPassedOnWithoutAWatch) {
  contend();
  answer(granted());
  EXPECT_EQ(sink_.reports, Reports{"granted"});
  EXPECT_EQ(sink_.last_grant.token, FencingToken(7));
  EXPECT_TRUE(backend_->watches.empty());
  EXPECT_EQ(engine_->pending_timers(), 0U);
}

TEST_F(TryBackendTest, EveryTryOfAnAcquireHasTheSameOwner) {
  contend();
  answer(failed(errc::ambiguous));
  engine_->advance(1s);
  answer(granted());
  ASSERT_EQ(backend_->tried.size(), 2U);
  EXPECT_EQ(backend_->tried[0].owner, backend_->tried[1].owner);
  EXPECT_EQ(sink_.reports, (Reports{"unreachable", "granted"}));
  EXPECT_TRUE(backend_->released.empty());
}

TEST_F(TryBackendTest, ABusyLockIsWatchedAndTriedAgain) {
  contend();
  answer(busy());
  EXPECT_EQ(backend_->live_watches, 1);
  EXPECT_EQ(backend_->tried.size(), 2U) << "right after the watch stands";
  answer(busy());
  EXPECT_EQ(backend_->tried.size(), 2U);
  changed();
  EXPECT_EQ(backend_->tried.size(), 3U);
  answer(granted());
  EXPECT_EQ(sink_.reports, (Reports{"busy", "busy", "granted"}));
  give_up();
  EXPECT_EQ(backend_->live_watches, 0);
}

TEST_F(TryBackendTest, WithoutAWatchItPolls) {
  backend_->can_watch = false;
  contend();
  answer(busy());
  for (std::size_t i = 2; i < 20; ++i) {
    engine_->advance(1s);
    ASSERT_EQ(backend_->tried.size(), i);
    answer(busy());
  }
}

// Its mark keeps readers out, and would do so until it is over.
TEST_F(TryBackendTest, AWriterWhoWaitedAndGivesUpIsAbandoned) {
  LockRequest request{.name = "x", .owner = owner_, .holder = "h", .lease = 30s, .wait = true};
  request.kind = LockKind::read_write;
  for (const bool under_way : {false, true}) {
    contend(request);
    answer(busy());  // and it is tried once more, as the watch stands
    if (!under_way) answer(busy());
    give_up();
    if (under_way) answer(busy());
    ASSERT_EQ(backend_->released.size(), 1U);
    EXPECT_EQ(backend_->released.front().owner, owner_);
    EXPECT_EQ(backend_->released.front().kind, LockKind::read_write);
    backend_->released.clear();
  }
  contend(request);
  answer(granted());
  give_up();
  EXPECT_TRUE(backend_->released.empty()) << "it holds the lock";
  request.mode = Mode::shared;
  contend(request);
  answer(busy());
  answer(busy());
  give_up();
  EXPECT_TRUE(backend_->released.empty()) << "a reader leaves no mark";
  request.mode = Mode::exclusive;
  contend(request);
  answer(failed(errc::unavailable));
  give_up();
  EXPECT_TRUE(backend_->released.empty()) << "nor does a writer who never got there";
}

TEST_F(TryBackendTest, HandlersMayAnswerFromInsideTheCall) {
  int n = 0;
  backend_->on_try = [&](const auto& done) { done(++n < 5 ? busy() : granted()); };
  contend();
  EXPECT_EQ(sink_.reports, (Reports{"busy", "busy"}));
  changed();
  changed();
  changed();
  EXPECT_EQ(sink_.reports, (Reports{"busy", "busy", "busy", "busy", "granted"}));
}

TEST_F(TryBackendTest, AGrantFromInsideTheFirstCallIsPassedOn) {
  backend_->on_try = [&](const auto& done) { done(granted()); };
  contend();
  EXPECT_EQ(sink_.reports, Reports{"granted"});
}

TEST_F(TryBackendTest, AWatchMayReportFromInsideTheCall) {
  backend_->on_watch = [&] { backend_->watches.back()(); };
  contend();
  answer(busy());
  EXPECT_EQ(backend_->tried.size(), 2U) << "covered by the try that follows anyway";
  answer(busy());
  EXPECT_EQ(backend_->tried.size(), 2U);
}

TEST_F(TryBackendTest, ALateGrantAfterGivingUpIsReleased) {
  contend();
  give_up();
  answer(granted());
  EXPECT_TRUE(sink_.reports.empty());
  ASSERT_EQ(backend_->released.size(), 1U);
  EXPECT_EQ(backend_->released[0].owner, owner_);
  EXPECT_EQ(backend_->released[0].token, FencingToken(7));
}

TEST_F(TryBackendTest, ALateBusyAfterGivingUpLeavesNothingToDo) {
  contend();
  give_up();
  answer(busy());
  EXPECT_TRUE(backend_->released.empty());
  EXPECT_TRUE(backend_->watches.empty());
  EXPECT_EQ(engine_->pending_timers(), 0U);
}

TEST_F(TryBackendTest, AnUnknownOutcomeIsAbandonedWhenNobodyTriesAgain) {
  contend();
  answer(failed(errc::ambiguous));
  give_up();
  ASSERT_EQ(backend_->released.size(), 1U);
  EXPECT_EQ(backend_->released[0].owner, owner_);
  EXPECT_EQ(backend_->released[0].lease, 30s);
  EXPECT_EQ(engine_->pending_timers(), 0U);
}

TEST_F(TryBackendTest, ATryThatEndsAmbiguousAfterGivingUpIsAbandoned) {
  contend();
  give_up();
  EXPECT_TRUE(backend_->released.empty()) << "not while the try is under way, it might overtake it";
  answer(failed(errc::ambiguous));
  EXPECT_EQ(backend_->released.size(), 1U);
}

TEST_F(TryBackendTest, AnEarlierUnknownOutcomeIsAbandonedAfterTheLastTryToo) {
  contend();
  answer(failed(errc::ambiguous));
  engine_->advance(1s);
  give_up();
  answer(failed(errc::unavailable));
  EXPECT_EQ(backend_->released.size(), 1U);
}

// Or a lock that was granted to nobody would stay until its lease ends.
TEST_F(TryBackendTest, TheBackendClosesAfterTheTriesThatNobodyWaitsForAreSettled) {
  for (const bool is_granted : {true, false}) {
    int closed = 0;
    contend();
    give_up();
    task([&] { backend_->close([&] { ++closed; }); });
    EXPECT_EQ(closed, 0);
    const auto released_before = backend_->released.size();
    answer(is_granted ? granted() : busy());
    EXPECT_EQ(closed, 1);
    EXPECT_EQ(backend_->released.size(), released_before + (is_granted ? 1 : 0));
    task([&] { backend_->close([&] { ++closed; }); });
    EXPECT_EQ(closed, 2) << "nothing is under way";
  }
}

TEST_F(TryBackendTest, ATryThatNeverHappenedNeedsNoAbandoning) {
  contend();
  answer(failed(errc::unavailable));
  give_up();
  EXPECT_TRUE(backend_->released.empty());
}

TEST_F(TryBackendTest, AnAmbiguousTryThatDoesNotWaitIsAbandoned) {
  contend(false);
  answer(failed(errc::ambiguous));
  EXPECT_EQ(sink_.reports, Reports{"failed"});
  EXPECT_EQ(sink_.last_failure.code, errc::ambiguous);
  give_up();
  EXPECT_EQ(backend_->released.size(), 1U);
}

TEST_F(TryBackendTest, AFinalErrorEndsItAndAbandonsWhatIsUnknown) {
  contend();
  answer(failed(errc::ambiguous));
  engine_->advance(1s);
  answer(failed(errc::access_denied));
  EXPECT_EQ(sink_.reports, (Reports{"unreachable", "failed"}));
  EXPECT_EQ(engine_->pending_timers(), 0U);
  give_up();
  EXPECT_EQ(backend_->released.size(), 1U);
}

TEST_F(TryBackendTest, AfterAFinalReportNothingMoreIsReported) {
  contend();
  answer(busy());
  answer(granted());
  if (!backend_->watches.empty()) changed();
  engine_->advance(10s);
  EXPECT_EQ(sink_.final, 1);
  EXPECT_EQ(sink_.reports.back(), "granted");
  EXPECT_EQ(backend_->tried.size(), 2U);
}

TEST_F(TryBackendTest, AWatchThatCallsAfterItsEndIsHarmless) {
  contend();
  answer(busy());
  answer(busy());
  give_up();
  EXPECT_EQ(backend_->live_watches, 0);
  changed();
  EXPECT_EQ(backend_->tried.size(), 2U);
}

TEST_F(TryBackendTest, AnAnswerAfterTheBackendIsGoneIsHarmless) {
  contend();
  const auto done = backend_->tries.back();
  task([&] {
    contention_.reset();
    backend_.reset();
  });
  task([&] { done(granted()); });
  EXPECT_TRUE(sink_.reports.empty());
}

TEST_F(TryBackendTest, AnAnswerInsideTheBackendsDestructorIsHarmless) {
  contend();
  const auto done = backend_->tries.back();
  backend_->on_destruction = [&] { done(failed(errc::unavailable)); };
  task([&] {
    contention_.reset();
    backend_.reset();
  });
  EXPECT_TRUE(sink_.reports.empty());
}

TEST_F(TryBackendTest, WhoGivesUpOnHearingThatItIsBusyAsksForNothingMore) {
  contend();
  sink_.on_busy = [this] { contention_.reset(); };
  answer(busy());
  EXPECT_TRUE(backend_->watches.empty());
  EXPECT_EQ(backend_->tried.size(), 1U);
}

// Gives up at the n-th event, wherever that is: nothing may be left behind or touched afterwards (ASan).
TEST_F(TryBackendTest, MayBeGivenUpAtAnyPoint) {
  for (int stop_at = 0; stop_at < 12; ++stop_at) {
    int n = 0;
    const auto step = [&] {
      if (n++ == stop_at) give_up();
    };
    sink_.reports.clear();
    backend_->tries.clear();
    backend_->released.clear();
    backend_->watches.clear();
    contend();
    step();
    for (const auto& outcome :
         {failed(errc::unavailable), failed(errc::ambiguous), busy(), busy(), busy(), granted()}) {
      if (backend_->tries.empty()) engine_->advance(2s);
      if (backend_->tries.empty()) break;
      answer(outcome);
      step();
      if (!backend_->watches.empty()) changed();
      step();
    }
    give_up();
    EXPECT_EQ(backend_->live_watches, 0) << stop_at;
    EXPECT_EQ(engine_->pending_timers(), 0U) << stop_at;
    for (const auto& done : std::exchange(backend_->tries, {})) task([&] { done(busy()); });
  }
}

}  // namespace
}  // namespace dlock
