// A client's core over a fake backend, with a manual engine.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <dlock/spi/url.hpp>

#include "core/client/client_core.hpp"
#include "core/client/lease_record.hpp"
#include "tests/support/fake_backend.hpp"
#include "tests/support/manual_engine.hpp"
#include "tests/support/recording_observer.hpp"

namespace dlock::test {

class CoreTest : public testing::Test {
 protected:
  // The result of an acquire.
  struct Outcome {
    int calls = 0;
    Failure failure;
    Lease lease;
    TimePoint at;
  };
  struct Released {
    int calls = 0;
    Failure failure;
    bool was_ours = false;
  };

  void open() {
    options_.label = "test";
    options_.clock = engine_->shared_clock();
    options_.observer = observer_;
    service_->inside_task = [engine = engine_] { return engine->inside_task(); };
    core_ = detail::ClientCore::create(engine_, Url::parse("fake://host"), options_, service_->factory());
  }
  void TearDown() override {
    if (core_) close();
  }
  void close() {
    core_->close();
    EXPECT_TRUE(engine_->stopped());
    engine_->run();
    EXPECT_FALSE(service_->has_backend());
    EXPECT_EQ(engine_->pending_timers(), 0U) << "a timer was left behind";
    core_.reset();
  }

  std::shared_ptr<Outcome> acquire(const AcquireOptions& options = {}, const std::string& name = "x") {
    auto outcome = std::make_shared<Outcome>();
    (void)detail::start_acquire(core_, {name}, options,
                                [outcome, engine = engine_.get()](detail::AcquireResult result) {
                                  ++outcome->calls;
                                  outcome->at = engine->now();
                                  outcome->failure = std::move(result.failure);
                                  if (result.lease)
                                    outcome->lease = detail::LeaseRecord::make_lease(std::move(result.lease));
                                });
    return outcome;
  }
  // A lease that the service granted at once.
  Lease hold(const AcquireOptions& options = {}, const std::string& name = "x") {
    const auto outcome = acquire(options, name);
    engine_->run();
    if (outcome->calls == 0) grant(service_->last_contend());
    EXPECT_EQ(outcome->calls, 1);
    EXPECT_FALSE(outcome->failure.code) << outcome->failure.detail;
    return std::move(outcome->lease);
  }
  // Runs a task, and then everything that it has queued.
  void task(const std::function<void()>& f) {
    EXPECT_TRUE(engine_->dispatch(f));
    engine_->run();
  }
  [[nodiscard]] FakeService::Contend& last() const { return service_->last_contend(); }
  // The service answers the newest request that the lock is held.
  void busy() {
    task([&] { last().busy(); });
  }
  void grant(FakeService::Contend& contend) {
    task([&] { contend.grant(service_->grant_of(contend.request)); });
  }
  std::shared_ptr<Released> release(Lease& lease) {
    auto released = std::make_shared<Released>();
    lease.async_release([released](const Failure& failure, bool was_ours) {
      ++released->calls;
      released->failure = failure;
      released->was_ours = was_ours;
    });
    engine_->run();
    return released;
  }
  void answer_release(ReleaseOutcome outcome) {
    ASSERT_FALSE(service_->releases.empty());
    auto release = std::move(service_->releases.back());
    service_->releases.pop_back();
    task([&] { release.done(std::move(outcome)); });
  }
  void answer_renewal(RenewOutcome outcome) {
    ASSERT_FALSE(service_->renewals.empty());
    auto renewal = std::move(service_->renewals.back());
    service_->renewals.pop_back();
    task([&] { renewal.done(std::move(outcome)); });
  }
  void confirm_releases() {
    service_->on_release = [](auto& release) { release.done({.status = ReleaseOutcome::Status::released}); };
  }
  void answer_renewals() {
    service_->on_renew = [this](auto& renewal) {
      renewal.done(
          {.status = RenewOutcome::Status::renewed, .valid_until = service_->valid_until(renewal.grant.lease)});
    };
  }
  // The service reports that the owner no longer holds it.
  void lose(const Lease& lease, const Failure& why = {errc::lost, "stolen"}) {
    task([&] { service_->host().lost(lease.owner(), why); });
  }
  // Runs f as a task at that time, while the test waits for something else.
  void in_task_after(std::chrono::nanoseconds delay, std::function<void()> f) {
    task([&] { (void)engine_->schedule(now() + delay, std::move(f)); });
  }
  [[nodiscard]] TimePoint now() const { return engine_->now(); }
  [[nodiscard]] Stats stats() const { return core_->stats(); }

  std::shared_ptr<ManualEngine> engine_ = std::make_shared<ManualEngine>();
  std::shared_ptr<FakeService> service_ = std::make_shared<FakeService>();
  std::shared_ptr<RecordingObserver> observer_ = std::make_shared<RecordingObserver>();
  ClientOptions options_;
  std::shared_ptr<detail::ClientCore> core_;
};

}  // namespace dlock::test
