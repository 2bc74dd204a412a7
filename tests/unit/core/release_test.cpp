// Giving leases back: held, lost and empty ones, once and twice, and in races with their loss.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "core/client/lease_record.hpp"
#include "tests/support/core_fixture.hpp"

namespace dlock::detail {
namespace {

using namespace std::chrono_literals;
using RenewStatus = RenewOutcome::Status;
using ReleaseStatus = ReleaseOutcome::Status;

class ReleaseTest : public test::CoreTest {
 protected:
  void SetUp() override { open(); }
};

TEST_F(ReleaseTest, ARelease_SaysWhatTheServiceAnswered_AsynchronouslyInTheCallOrToTheObserver) {
  const Failure no_answer{errc::ambiguous, "no answer"};
  struct Row {
    ReleaseOutcome outcome;
    bool was_ours;
    const char* event;
  };
  for (const Row& row : {Row{{.status = ReleaseStatus::released, .failure = {}}, true, "released x"},
                         Row{{.status = ReleaseStatus::not_owner, .failure = {}}, false, "released x unconfirmed"},
                         Row{{.status = ReleaseStatus::failed, .failure = no_answer}, false, nullptr}}) {
    const auto released_before = stats().released;
    const auto warned = observer_->count("warning x");
    service_->on_release = nullptr;
    Lease lease = hold();
    engine_->advance(3s);
    const auto released = release(lease);
    EXPECT_FALSE(lease.held()) << "from the start of the call";
    EXPECT_EQ(released->calls, 0);
    const auto second = release(lease);
    EXPECT_EQ(second->calls, 1);
    EXPECT_FALSE(second->was_ours || second->failure.code);
    answer_release(row.outcome);
    EXPECT_EQ(released->calls, 1);
    EXPECT_EQ(released->was_ours, row.was_ours);
    EXPECT_EQ(released->failure.code, row.outcome.failure.code);
    EXPECT_EQ(released->failure.detail, row.outcome.failure.detail);
    EXPECT_EQ(stats().released - released_before, row.was_ours ? 1U : 0U);
    EXPECT_EQ(stats().held, 0U);
    if (row.event != nullptr) {
      EXPECT_EQ(observer_->events().back(), row.event);
      EXPECT_EQ(observer_->last_released.hold, 3s);
    }
    service_->on_release = [&](auto& asked) { asked.done(row.outcome); };
    Lease waiting = hold();
    std::error_code ec;
    EXPECT_EQ(waiting.release(ec), row.was_ours);
    EXPECT_EQ(ec, row.outcome.failure.code);
    Lease throwing = hold();
    if (row.event != nullptr) {
      EXPECT_EQ(throwing.release(), row.was_ours);
    } else {
      EXPECT_THROW((void)throwing.release(), Error);
    }
    EXPECT_EQ(observer_->count("warning x"), warned);
    Lease in_background = hold();
    in_background.release_in_background();
    EXPECT_FALSE(in_background.held());
    in_background.release_in_background();
    engine_->run();
    EXPECT_EQ(observer_->count("warning x") - warned, row.event == nullptr ? 1U : 0U);
    engine_->advance(60s);
    for (const Lease* each : {&lease, &waiting, &throwing, &in_background}) {
      EXPECT_FALSE(each->lost().stop_requested()) << "a release is no loss";
    }
  }
  EXPECT_EQ(observer_->last_warning.reason.detail, "no answer");
  EXPECT_EQ(service_->released.size(), 12U);
  EXPECT_EQ(service_->renewals_asked, 0U);
  EXPECT_EQ(stats().lost, 0U);
}

// --- ended() and remaining() ---

TEST_F(ReleaseTest, TheEndOfALease_FiresBeforeTheServiceIsAsked_AndWhatRemainsIsZero) {
  Lease lease = hold();
  int ends = 0;
  const std::stop_callback on_end(lease.ended(), [&] {
    ++ends;
    EXPECT_FALSE(lease.held());
    EXPECT_TRUE(service_->released.empty());
    EXPECT_FALSE(lease.release()) << "it is under way";
  });
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(lease.remaining(), lease.valid_until() - now());
    EXPECT_GT(lease.remaining(), 0s);
    engine_->manual_clock().advance(3s);
  }
  EXPECT_EQ(ends, 0);
  (void)release(lease);
  EXPECT_EQ(ends, 1);
  EXPECT_TRUE(lease.ended().stop_requested());
  EXPECT_FALSE(lease.lost().stop_requested());
  EXPECT_EQ(lease.remaining(), 0s);
}

TEST_F(ReleaseTest, TheEndOfALease_FiresOnceAtItsDestruction_AlsoInItsCallback) {
  for (const bool inside : {false, true}) {
    service_->released.clear();
    std::optional<Lease> lease = hold();
    int ends = 0;
    const std::stop_callback on_end(lease->ended(), [&] {
      ++ends;
      if (inside) lease.reset();
    });
    inside ? lease->release_in_background() : lease.reset();
    EXPECT_EQ(ends, 1);
    EXPECT_EQ(service_->released.size(), 1U);
  }
}

TEST_F(ReleaseTest, TheEndOfALease_FiresWithTheLoss_OrWithinACallAfterIt) {
  for (const bool call : {false, true}) {
    confirm_releases();
    Lease lease = hold();
    const std::stop_token ended = lease.ended();
    const std::stop_token lost = lease.lost();
    if (call) {
      engine_->manual_clock().advance(40s);
      EXPECT_EQ(lease.remaining(), 0s);
      lease.release_in_background();
    } else {
      engine_->advance(40s);
    }
    EXPECT_TRUE(lost.stop_requested() && ended.stop_requested() && lease.ended().stop_requested());
  }
}

// --- Lost leases ---

// A backend judges by it whether a lock that is gone can have been released by a request whose answer was lost.
TEST_F(ReleaseTest, ARelease_AfterARenewal_HasTheRenewedEnd) {
  Lease lease = hold();
  engine_->advance(12s);
  const TimePoint renewed_until = now() + 29s;
  answer_renewal({.status = RenewStatus::renewed, .valid_until = renewed_until});
  ASSERT_EQ(lease.valid_until(), renewed_until);
  (void)release(lease);
  ASSERT_EQ(service_->released.size(), 1U);
  EXPECT_EQ(service_->released[0].valid_until, renewed_until);
}

TEST_F(ReleaseTest, AReleaseOfALostLease_AnswersFalseAtOnce_AndNotifiesAServiceThatMayKeepTheLock) {
  const std::vector<std::pair<std::function<void(Lease&)>, bool>> ways = {
      {[&](Lease&) { engine_->advance(40s); }, true},
      {[&](Lease&) { engine_->manual_clock().advance(31s); }, true},  // the owner id keeps the next holder safe
      {[&](Lease& lease) { lose(lease); }, false}};
  for (const auto& [lose_it, is_sent] : ways) {
    const auto losses = stats().lost;
    service_->released.clear();
    Lease lease = hold();
    lose_it(lease);
    const auto released = release(lease);
    ASSERT_EQ(released->calls, 1) << "without waiting for the service";
    EXPECT_FALSE(released->was_ours);
    EXPECT_FALSE(released->failure.code);
    ASSERT_EQ(service_->released.size(), is_sent ? 1U : 0U);
    if (is_sent) {
      EXPECT_EQ(service_->released[0].owner, lease.owner());
    }
    EXPECT_TRUE(lease.lost().stop_requested());
    EXPECT_EQ(stats().lost, losses + 1);
  }
  EXPECT_EQ(observer_->count("lost x"), ways.size());
  EXPECT_EQ(stats().released, 0U);
}

TEST_F(ReleaseTest, ACallbackOfALossMayDestroyItsLeaseWhileTheProgramAsksForIt) {
  auto lease = std::make_unique<Lease>(hold());
  const std::stop_callback destroy(lease->lost(), [&] { lease.reset(); });
  engine_->manual_clock().advance(31s);
  const std::stop_token lost = lease->lost();
  EXPECT_TRUE(lost.stop_requested());
  EXPECT_EQ(lease, nullptr);
  engine_->run();
  EXPECT_EQ(service_->released.size(), 1U);
}

TEST_F(ReleaseTest, ALossReportedWhileTheReleaseIsQueuedIsNoLossSignal) {
  confirm_releases();
  Lease lease = hold();
  const std::stop_token lost = lease.lost();
  engine_->set_busy(true);
  (void)engine_->dispatch([&] { service_->host().lost(lease.owner(), {errc::lost, "stolen"}); });
  auto released = std::make_shared<Released>();
  lease.async_release([released](std::error_code, bool was_ours) {
    ++released->calls;
    released->was_ours = was_ours;
  });
  engine_->set_busy(false);
  engine_->run();
  EXPECT_FALSE(lost.stop_requested());
  ASSERT_EQ(released->calls, 1);
  EXPECT_FALSE(released->was_ours);
  EXPECT_EQ(observer_->count("lost x"), 0U);
  EXPECT_EQ(stats().lost, 0U);
}

// --- Objects ---

TEST_F(ReleaseTest, DestroyingALease_WaitsForAtMostTheCloseTimeout_AndNotForOneThatIsLostOrReleased) {
  const std::vector<std::pair<std::function<void(Lease&)>, std::chrono::nanoseconds>> rows = {
      {[](Lease&) {}, 2s},  // the service does not answer
      {[&](Lease&) { engine_->advance(60s); }, 0s},
      {[&](Lease& lease) { (void)release(lease); }, 0s}};
  for (const auto& [before, waited] : rows) {
    service_->released.clear();
    TimePoint start;
    {
      Lease lease = hold();
      before(lease);
      start = now();
    }
    EXPECT_EQ(now(), start + waited);
    EXPECT_EQ(service_->released.size(), 1U);
  }
}

TEST_F(ReleaseTest, AnEmptyLeaseIsHarmless) {
  Lease lease;
  EXPECT_FALSE(lease.has_value() || lease.held() || lease.release());
  EXPECT_EQ(lease.token(), FencingToken());
  EXPECT_EQ(lease.name(), "");
  EXPECT_EQ(lease.owner(), OwnerId());
  EXPECT_FALSE(lease.lost().stop_possible() || lease.ended().stop_possible());
  EXPECT_LT(lease.valid_until(), now());
  EXPECT_EQ(lease.remaining(), 0s);
  const auto released = release(lease);
  EXPECT_EQ(released->calls, 1);
  EXPECT_FALSE(released->failure.code || released->was_ours);
  lease.release_in_background();
  Lease other = std::move(lease);
  EXPECT_FALSE(other.has_value());
  other = hold();
  Lease& self = other;
  other = std::move(self);
  EXPECT_TRUE(other.held()) << "self-assignment";
  confirm_releases();
}

}  // namespace
}  // namespace dlock::detail
