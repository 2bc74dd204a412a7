// The ready-made contention, with a service that the test speaks for.
#include <dlock/spi/try_backend.hpp>

#include <set>

#include "tests/support/manual_engine.hpp"
#include "tests/support/recording_host.hpp"
#include "tests/support/scripted_try_backend.hpp"

namespace dlock {
namespace {

using namespace std::chrono_literals;
using Status = TryOutcome::Status;

using test::ScriptedTryBackend;

class TryBackendTest : public testing::Test {
 protected:
  void contend() {
    give_up();
    sink_.emplace();
    task([&] {
      contention_ =
          backend_->contend({.name = "x", .owner = owner_, .holder = "h", .lease = 30s, .wait = true}, *sink_);
    });
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
  void use(const TryPolicy& policy) {
    task([&] {
      contention_.reset();
      backend_ = std::make_unique<ScriptedTryBackend>(host_, policy);
    });
  }
  [[nodiscard]] std::chrono::nanoseconds pause_before_the_next_try() {
    const TimePoint before = engine_->now();
    engine_->advance(*engine_->next_timer() - before);
    EXPECT_FALSE(backend_->tries.empty());
    return engine_->now() - before;
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
  test::RecordingHost host_{*engine_};
  std::unique_ptr<ScriptedTryBackend> backend_ = std::make_unique<ScriptedTryBackend>(host_, TryPolicy{});
  std::optional<test::Attempt> sink_;
  std::unique_ptr<Contention> contention_;
};

TEST_F(TryBackendTest, BusyLock_IsWatchedAndTriedAgain) {
  contend();
  answer(granted());
  EXPECT_EQ(sink_->busy_reports, 0);
  EXPECT_EQ(sink_->grant.value().token, FencingToken(7));
  EXPECT_TRUE(backend_->watches.empty());
  EXPECT_EQ(engine_->pending_timers(), 0U);
  backend_->tried.clear();
  contend();
  answer(busy());
  EXPECT_EQ(backend_->live_watches, 1);
  EXPECT_EQ(backend_->tried.size(), 2U) << "right after the watch stands";
  answer(busy());
  EXPECT_EQ(backend_->tried.size(), 2U);
  changed();
  EXPECT_EQ(backend_->tried.size(), 3U);
  answer(granted());
  EXPECT_TRUE(sink_->grant && sink_->busy_reports == 2);
  changed();
  engine_->advance(10s);
  EXPECT_EQ(sink_->busy_reports, 2) << "nothing after a final report";
  EXPECT_EQ(backend_->tried.size(), 3U);
  give_up();
  EXPECT_EQ(backend_->live_watches, 0);
}

TEST_F(TryBackendTest, AnswerInOrAfterTheDestructor_IsIgnored) {
  contend();
  const auto done = backend_->tries.back();
  backend_->on_destruction = [&] { done(failed(errc::unavailable)); };
  task([&] {
    contention_.reset();
    backend_.reset();
  });
  task([&] { done(granted()); });
  EXPECT_FALSE(sink_->reported());
}

TEST_F(TryBackendTest, NextTry_ComesWithinItsBoundsOrAtTheLeasesEnd) {
  const TryPolicy polls{.poll_min = 100ms, .poll_max = 200ms};
  struct Row {
    TryPolicy policy;
    std::optional<std::chrono::nanoseconds> retry_after;
    std::chrono::nanoseconds least;
    std::chrono::nanoseconds most;
  };
  const std::vector<Row> rows = {{polls, std::nullopt, 100ms, 200ms},
                                 {{.poll_min = 100ms, .poll_max = 100ms}, std::nullopt, 100ms, 100ms},
                                 {{}, 30ms, 30ms, 35ms},
                                 // a far end of the lease does not replace the safety net
                                 {{}, 1h, 500ms, 1s},
                                 {{}, std::chrono::nanoseconds::max(), 500ms, 1s},
                                 // a lease that is over already is no reason for a busy loop
                                 {{}, 0ns, 1ms, 2ms},
                                 {{}, -5s, 1ms, 1ms}};
  for (std::size_t row = 0; row < rows.size(); ++row) {
    SCOPED_TRACE(row);
    use(rows[row].policy);
    backend_->can_watch = false;
    contend();
    std::set<std::chrono::nanoseconds> pauses;
    for (int i = 0; i < 30; ++i) {
      answer({.status = Status::busy, .retry_after = rows[row].retry_after});
      const auto pause = pause_before_the_next_try();
      EXPECT_GE(pause, rows[row].least);
      EXPECT_LE(pause, rows[row].most);
      EXPECT_EQ(backend_->tried.back().owner, owner_);
      pauses.insert(pause);
    }
    EXPECT_TRUE(pauses.size() > 1U || rows[row].least == rows[row].most) << "jitter";
  }
}

TEST_F(TryBackendTest, UnreachableService_IsTriedWithGrowingPauses) {
  use({.backoff_min = 20ms, .backoff_max = 1s});
  contend();
  answer(busy());
  answer(busy());
  changed();
  for (std::chrono::nanoseconds expected = 20ms; expected <= 16s; expected *= 2) {
    answer(failed(errc::unavailable));
    const auto pause = pause_before_the_next_try();
    EXPECT_GE(pause, std::min<std::chrono::nanoseconds>(expected, 1s) / 2);
    EXPECT_LE(pause, std::min<std::chrono::nanoseconds>(expected, 1s));
  }
  answer(failed(errc::unavailable));
  changed();
  answer(busy());
  changed();
  answer(failed(errc::unavailable));
  EXPECT_LE(pause_before_the_next_try(), 20ms) << "an answer resets it";
  for (const auto bound : {std::chrono::nanoseconds(0), std::chrono::nanoseconds::max()}) {
    use({.backoff_min = bound, .backoff_max = bound});
    contend();
    for (int i = 0; i < 3; ++i) {
      answer(failed(errc::unavailable));
      EXPECT_EQ(engine_->pending_timers(), 1U);
      if (bound == 0ns) {
        EXPECT_EQ(pause_before_the_next_try(), 1ms) << "no busy loop";
      } else {
        break;
      }
    }
  }
}

}  // namespace
}  // namespace dlock
