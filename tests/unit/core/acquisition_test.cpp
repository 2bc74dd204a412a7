// An acquire, from the request to the lease or the failure.
#include "core/client/acquisition.hpp"

#include <cstdint>
#include <stop_token>

#include "core/client/acquire_deadline.hpp"
#include "tests/support/core_fixture.hpp"

namespace dlock::detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

class AcquisitionTest : public test::CoreTest {
 protected:
  void SetUp() override { open(); }
  void unreachable(const Failure& why) {
    task([&] { last().report([&](GrantSink& sink) { sink.unreachable(why); }); });
  }
  // A grant whose lease of a second is over when it arrives.
  Grant stale_grant() {
    const Grant stale = service_->grant_of(last().request);
    engine_->advance(1s);
    return stale;
  }
};

TEST_F(AcquisitionTest, Request_HasItsOptionsAndAnOwnerOfItsOwn) {
  const auto outcome = acquire({.wait = 5s, .lease = 12s}, "orders/42");
  const LockRequest first = last().request;
  EXPECT_EQ(first.name, "orders/42");
  EXPECT_EQ(first.lease, 12s);
  EXPECT_TRUE(first.wait);
  EXPECT_NE(first.owner, OwnerId());
  EXPECT_NE(first.holder.find(":test"), std::string::npos);
  const auto by_default = acquire();
  EXPECT_EQ(last().request.lease, 30s);
  EXPECT_TRUE(last().request.wait);
  EXPECT_NE(last().request.owner, first.owner) << "each acquire has an owner id of its own";
  engine_->advance(std::chrono::hours(24 * 365));
  EXPECT_EQ(by_default->calls, 0) << "a wait without limit";
}

// Otherwise a caller that gave up would find the lock busy with its own last attempt.
TEST_F(AcquisitionTest, NextRequest_ComesAfterTheContentionGaveUp) {
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

// --- The end of a wait -----------------------------------------------------------------------------------------------

// One row for each sequence of news; the acquire ends exactly then.
// Shows: deadlines
TEST_F(AcquisitionTest, Wait_EndsAtItsDeadlineWithTheLastNews) {
  enum class News { busy, unreachable };
  struct Row {
    const char* name;
    nanoseconds wait;
    std::vector<std::pair<nanoseconds, News>> news;  // when
    std::error_code code;
    nanoseconds end;
    std::string detail = "\"x\"";
  };
  const std::vector<Row> rows = {
      {"try, busy", 0s, {{0s, News::busy}}, errc::timed_out, 0s},
      {"busy", 5s, {{0s, News::busy}}, errc::timed_out, 5s},
      {"busy, briefly", 100ms, {{0s, News::busy}}, errc::timed_out, 100ms},
      {"busy after the wait", 100ms, {{1s, News::busy}}, errc::timed_out, 1s},
      {"try, silent", 0s, {}, errc::unavailable, 2s},
      {"silent, briefly", 500ms, {}, errc::unavailable, 2s},
      {"silent", 5s, {}, errc::unavailable, 5s},
      {"unreachable", 5s, {{0s, News::unreachable}}, errc::unavailable, 5s, "out of reach"},
      {"busy last", 5s, {{0s, News::unreachable}, {1s, News::busy}}, errc::timed_out, 5s},
      {"unreachable last", 5s, {{0s, News::busy}, {1s, News::unreachable}}, errc::unavailable, 5s, "out of reach"}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const TimePoint start = now();
    const Stats before = stats();
    const auto outcome = acquire({.wait = row.wait});
    EXPECT_EQ(last().request.wait, row.wait > 0s);
    for (const auto& [when, news] : row.news) {
      engine_->advance(start + when - now());
      EXPECT_EQ(outcome->calls, 0);
      news == News::busy ? busy() : unreachable({errc::unavailable, "out of reach"});
    }
    if (now() < start + row.end) {
      engine_->advance(start + row.end - now() - 1ns);
      EXPECT_EQ(outcome->calls, 0);
      engine_->advance(1ns);
    }
    ASSERT_EQ(outcome->calls, 1);
    EXPECT_EQ(outcome->failure.code, row.code);
    EXPECT_NE(outcome->failure.detail.find(row.detail), std::string::npos) << outcome->failure.detail;
    EXPECT_EQ(outcome->at, start + row.end);
    EXPECT_FALSE(outcome->lease.has_value());
    EXPECT_EQ(service_->live_contentions(), 0U) << "given up, without residue";
    EXPECT_EQ(engine_->pending_timers(), 0U);
    const bool was_busy = row.code == errc::timed_out;
    EXPECT_EQ(stats().busy - before.busy, was_busy && row.wait == 0s ? 1U : 0U);
    EXPECT_EQ(stats().timed_out - before.timed_out, was_busy && row.wait > 0s ? 1U : 0U);
    EXPECT_EQ(stats().failed - before.failed, was_busy ? 0U : 1U);
  }
  EXPECT_EQ(AcquireDeadline(TimePoint::max() - 1ns, 1h, forever.value()).wake(), TimePoint::max()) << "no overflow";
}

TEST_F(AcquisitionTest, Wait_BeginsWithTheCall) {
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

TEST_F(AcquisitionTest, UnreachableService_IsWarnedOfOnceForEachReason) {
  const auto outcome = acquire({}, "a");
  const std::vector<std::pair<Failure, std::uint64_t>> rows = {{{errc::unavailable, "refused"}, 1},
                                                               {{errc::unavailable, "refused"}, 1},
                                                               {{errc::unavailable, "too many open files"}, 2},
                                                               {{errc::ambiguous, "too many open files"}, 3}};
  for (const auto& [why, warnings] : rows) {
    unreachable(why);
    EXPECT_EQ(observer_->count("warning a"), warnings);
    EXPECT_EQ(observer_->last_warning.reason.detail, why.detail);
  }
  busy();
  unreachable(rows.back().first);
  EXPECT_EQ(observer_->count("warning a"), 4U) << "it had been reached in between";
  EXPECT_EQ(outcome->calls, 0);
}

TEST_F(AcquisitionTest, GrantAtTheDeadline_Wins) {
  const auto late = acquire({.wait = 100ms});
  engine_->advance(1s);
  EXPECT_EQ(late->calls, 0);
  grant(last());
  EXPECT_TRUE(late->lease.held());
  const auto outcome = acquire({.wait = 5s});
  busy();
  Timer timer(*engine_);
  task([&] { timer.arm(now() + 5s, [&] { last().grant(service_->grant_of(last().request)); }); });
  engine_->advance(5s);
  ASSERT_EQ(outcome->calls, 1);
  EXPECT_TRUE(outcome->lease.held());
  EXPECT_EQ(outcome->lease.owner(), last().request.owner);
  EXPECT_EQ(outcome->lease.valid_until(), lease_valid_until(now(), 30s));
  EXPECT_EQ(service_->live_contentions(), 0U);
  EXPECT_EQ(stats().acquired, 2U);
}

// Shows: no-residue
TEST_F(AcquisitionTest, GrantAfterTheDeadline_IsReleased) {
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

// --- A lease that is over on arrival ---------------------------------------------------------------------------------

TEST_F(AcquisitionTest, LeaseThatExpiredOnArrival_IsReleasedAndTheWaitGoesOn) {
  const auto tried = acquire({.wait = 0s, .lease = 1s});
  const Grant too_late = stale_grant();
  task([&] { last().grant(too_late); });
  ASSERT_EQ(tried->calls, 1);
  EXPECT_EQ(tried->failure.code, errc::unavailable);
  EXPECT_EQ(service_->released.size(), 1U);
  EXPECT_EQ(stats().held, 0U);
  const TimePoint start = now();
  const auto outcome = acquire({.wait = 5s, .lease = 1s});
  for (std::size_t i = 0; i < 4; ++i) {
    const auto before = service_->contends.back();
    const Grant stale = stale_grant();
    task([&] { last().grant(stale); });
    EXPECT_EQ(outcome->calls, 0);
    EXPECT_EQ(before->sink, nullptr);
    EXPECT_NE(last().request.owner, stale.owner) << "a late release must not touch the new grant";
    ASSERT_EQ(service_->released.size(), 2 + i);
    EXPECT_EQ(service_->released.back().owner, stale.owner);
  }
  engine_->advance(10s);
  ASSERT_EQ(outcome->calls, 1);
  EXPECT_EQ(outcome->at, start + 5s) << "starting over does not prolong the wait";
  EXPECT_EQ(service_->live_contentions(), 0U);
}

TEST_F(AcquisitionTest, NewStartAfterTheDeadline_IsOneTry) {
  for (const bool granted : {false, true}) {
    service_->on_contend = nullptr;
    const auto outcome = acquire({.wait = 100ms, .lease = 1s});
    const Grant stale = stale_grant();
    service_->on_contend = [&](auto& contend) {
      contend.busy();
      if (granted) contend.grant(service_->grant_of(contend.request));
    };
    task([&] { last().grant(stale); });
    ASSERT_EQ(outcome->calls, 1);
    EXPECT_EQ(outcome->lease.held(), granted);
    EXPECT_EQ(outcome->failure.code, granted ? std::error_code() : errc::timed_out);
    EXPECT_EQ(service_->live_contentions(), 0U);
  }
}

TEST_F(AcquisitionTest, CancellationBeforeANewStart_EndsTheWait) {
  std::stop_source stop;
  const auto outcome = acquire({.wait = 5s, .lease = 1s, .cancel = stop.get_token()});
  const Grant stale = stale_grant();
  stop.request_stop();
  (void)engine_->dispatch([&] { last().grant(stale); });
  engine_->run();
  ASSERT_EQ(outcome->calls, 1);
  EXPECT_EQ(outcome->failure.code, errc::cancelled);
  EXPECT_EQ(service_->contends.size(), 1U);
}

// --- Failures --------------------------------------------------------------------------------------------------------

TEST_F(AcquisitionTest, FinalFailure_IsPassedOn) {
  for (const errc code : {errc::access_denied, errc::protocol, errc::unsupported, errc::ambiguous}) {
    service_->on_contend = [&](auto& contend) {
      contend.fail({code, "the service's words"});
      contend.busy();
      contend.unreachable();
      contend.fail({errc::closed, ""});
    };
    const auto outcome = acquire();
    ASSERT_EQ(outcome->calls, 1);
    EXPECT_EQ(outcome->failure.code, code);
    EXPECT_EQ(outcome->failure.detail, "the service's words");
    EXPECT_EQ(service_->live_contentions(), 0U);
  }
}

TEST_F(AcquisitionTest, FailureWithoutACode_IsAFailure) {
  const auto outcome = acquire();
  task([&] { last().fail({}); });
  ASSERT_EQ(outcome->calls, 1);
  EXPECT_TRUE(outcome->failure.code);
  EXPECT_FALSE(outcome->lease.has_value());
  const auto silent = acquire({.wait = 1s});
  unreachable({});
  engine_->advance(2s);
  ASSERT_EQ(silent->calls, 1);
  EXPECT_TRUE(silent->failure.code);
}

// --- Cancelling ------------------------------------------------------------------------------------------------------

// The conformance suite tests the others.
TEST_F(AcquisitionTest, CancellationInsideTheCallOfTheBackend_EndsTheWait) {
  std::stop_source stop;
  service_->on_contend = [&](auto&) { stop.request_stop(); };
  const auto outcome = acquire({.wait = 5s, .cancel = stop.get_token()});
  EXPECT_EQ(outcome->calls, 0) << "never inside request_stop()";
  engine_->run();
  ASSERT_EQ(outcome->calls, 1);
  EXPECT_EQ(outcome->failure.code, errc::cancelled);
  EXPECT_EQ(service_->live_contentions(), 0U);
  EXPECT_EQ(engine_->pending_timers(), 0U);
  EXPECT_EQ(stats().cancelled, 1U);
}

}  // namespace
}  // namespace dlock::detail
