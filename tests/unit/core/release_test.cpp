// The end of leases: by a release, a loss, a destructor, and by the close of their client in the middle of everything.
#include <gtest/gtest.h>

#include <optional>
#include <stop_token>

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

TEST_F(ReleaseTest, ReleaseInEachForm_ReportsTheServicesAnswer) {
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

TEST_F(ReleaseTest, EndSignal_FiresBeforeTheReleaseIsSent) {
  Lease lease = hold();
  int ends = 0;
  const std::stop_callback on_end(lease.ended(), [&] {
    ++ends;
    EXPECT_FALSE(lease.held());
    EXPECT_TRUE(service_->released.empty());
    EXPECT_FALSE(lease.release()) << "it has begun";
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

TEST_F(ReleaseTest, EndSignal_FiresOnceAtTheDestructionOrWithTheLoss) {
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
  confirm_releases();
  for (const bool by_call : {false, true}) {
    Lease lease = hold();
    const std::stop_token ended = lease.ended();
    const std::stop_token lost = lease.lost();
    by_call ? engine_->manual_clock().advance(40s) : engine_->advance(40s);
    EXPECT_EQ(lease.remaining(), 0s);
    if (by_call) lease.release_in_background();
    EXPECT_TRUE(lost.stop_requested() && ended.stop_requested() && lease.ended().stop_requested());
  }
}

// The end says whether a lock that is gone can have been released by a request whose answer was lost.
TEST_F(ReleaseTest, ReleaseAfterARenewal_HasTheRenewedEnd) {
  Lease lease = hold();
  engine_->advance(12s);
  const TimePoint renewed_until = now() + 29s;
  answer_renewal({.status = RenewStatus::renewed, .valid_until = renewed_until});
  ASSERT_EQ(lease.valid_until(), renewed_until);
  (void)release(lease);
  ASSERT_EQ(service_->released.size(), 1U);
  EXPECT_EQ(service_->released[0].valid_until, renewed_until);
}

TEST_F(ReleaseTest, ReleaseOfALostLease_AnswersFalseAtOnce) {
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
    EXPECT_FALSE(released->was_ours || released->failure.code);
    ASSERT_EQ(service_->released.size(), is_sent ? 1U : 0U) << "the service may still have the lock";
    if (is_sent) {
      EXPECT_EQ(service_->released[0].owner, lease.owner());
    }
    EXPECT_TRUE(lease.lost().stop_requested());
    EXPECT_EQ(stats().lost, losses + 1);
  }
  EXPECT_EQ(observer_->count("lost x"), ways.size());
  EXPECT_EQ(stats().released, 0U);
}

TEST_F(ReleaseTest, LossCallback_MayDestroyItsLease) {
  auto lease = std::make_unique<Lease>(hold());
  const std::stop_callback destroy(lease->lost(), [&] { lease.reset(); });
  engine_->manual_clock().advance(31s);
  const std::stop_token lost = lease->lost();
  EXPECT_TRUE(lost.stop_requested());
  EXPECT_EQ(lease, nullptr);
  engine_->run();
  EXPECT_EQ(service_->released.size(), 1U);
}

TEST_F(ReleaseTest, LossWhileTheReleaseIsQueued_IsNotSignalled) {
  confirm_releases();
  Lease lease = hold();
  const std::stop_token lost = lease.lost();
  engine_->set_busy(true);
  (void)engine_->dispatch([&] { service_->host().lost(lease.owner(), {errc::lost, "stolen"}); });
  const auto released = release(lease);  // the lease counts as released before both tasks run
  engine_->set_busy(false);
  EXPECT_FALSE(lost.stop_requested());
  ASSERT_EQ(released->calls, 1);
  EXPECT_FALSE(released->was_ours);
  EXPECT_EQ(observer_->count("lost x"), 0U);
  EXPECT_EQ(stats().lost, 0U);
}

TEST_F(ReleaseTest, Destructor_WaitsForTheReleaseWithinTheCloseTimeout) {
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

// --- The close of the client -----------------------------------------------------------------------------------------

class ClosingTest : public ReleaseTest {
 protected:
  void restart() {
    engine_ = std::make_shared<test::ManualEngine>();
    service_ = std::make_shared<test::FakeService>();
    open();
  }
};

TEST_F(ClosingTest, Close_WaitsForEachReleaseWithinTheCloseTimeout) {
  for (const bool inside_the_call : {true, false}) {
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
    restart();
  }
  const Lease lease = hold();
  std::shared_ptr<Outcome> during;
  in_task_after(1s, [&] { during = acquire({}, "y"); });
  TimePoint start = now();
  close();
  EXPECT_EQ(engine_->now(), start + 2s) << "a release that is not answered";
  EXPECT_FALSE(service_->close_asked) << "not before the releases are done";
  ASSERT_TRUE(during);
  EXPECT_EQ(during->failure.code, errc::closed);
  EXPECT_EQ(service_->contends.size(), 1U);
  service_->releases[0].done({.status = ReleaseStatus::released});  // after the close
  restart();
  service_->on_close = [](auto) {};
  start = now();
  close();
  EXPECT_EQ(engine_->now(), start + 2s) << "a backend that does not answer";
}

// The handler runs exactly once; one that holds its own lease would keep all of the client for ever.
TEST_F(ClosingTest, Close_AnswersAnUnconfirmedReleaseOnce) {
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

TEST_F(ClosingTest, ReleaseAnsweredInOrAfterTheBackendsEnd_IsHarmless) {
  for (const bool inside : {true, false}) {
    const std::weak_ptr<ClientCore> weak = core_;
    const auto answer = [&] { service_->releases.at(0).done({.status = ReleaseStatus::failed}); };
    if (inside) service_->on_destruction = answer;
    {
      const Lease lease = hold();
      close();
    }
    EXPECT_TRUE(weak.expired());
    if (!inside) answer();
    restart();
  }
}

TEST_F(ClosingTest, CloseInAHandler_DoesNotWait) {
  for (const bool answered : {false, true}) {
    Lease lease = hold();
    const auto outcome = acquire({}, "y");
    const TimePoint start = now();
    core_->context().notifier->complete([&] { core_->close(); });
    engine_->run();
    EXPECT_EQ(now(), start);
    EXPECT_FALSE(lease.held());
    EXPECT_EQ(outcome->calls, 1);
    EXPECT_EQ(outcome->failure.code, errc::closed);
    EXPECT_FALSE(engine_->stopped()) << "the service is given its time";
    if (answered) {
      task([&] { service_->releases[0].done({.status = ReleaseStatus::released}); });
    } else {
      engine_->advance(2s - 1ns);
      EXPECT_FALSE(engine_->stopped());
      engine_->advance(1ns);
    }
    EXPECT_TRUE(engine_->stopped());
    EXPECT_FALSE(service_->has_backend());
    EXPECT_EQ(engine_->pending_timers(), 0U);
    const std::weak_ptr<ClientCore> weak = std::exchange(core_, nullptr);
    service_->releases.clear();
    lease = Lease();
    EXPECT_TRUE(weak.expired()) << "nothing is left of it";
    restart();
  }
}

}  // namespace
}  // namespace dlock::detail
