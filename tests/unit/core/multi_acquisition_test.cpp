// The acquire of several locks, and what becomes of their leases, step by step.
#include "core/api/multi_acquisition.hpp"

#include <optional>
#include <stop_token>

#include "tests/support/core_fixture.hpp"
#include "tests/support/refusals.hpp"

namespace dlock::detail {
namespace {

using namespace std::chrono_literals;
using Names = std::vector<std::string>;
using ReleaseStatus = ReleaseOutcome::Status;

class MultiAcquisitionTest : public test::CoreTest {
 protected:
  struct AllOutcome {
    int calls = 0;
    Failure failure;
    MultiLease leases;
    TimePoint at;
  };

  void SetUp() override {
    open();
    confirm_releases();
  }
  static std::shared_ptr<const LockPlaces> locks(ClientCore& core, const Names& names) {
    std::vector<LockPlace> places;
    places.reserve(names.size());
    for (const std::string& name : names) places.push_back({core.shared_from_this(), name});
    return std::make_shared<const LockPlaces>(std::move(places));
  }
  std::shared_ptr<AllOutcome> acquire_all(std::shared_ptr<const LockPlaces> locks, const AcquireOptions& options = {}) {
    auto outcome = std::make_shared<AllOutcome>();
    std::make_shared<MultiAcquisition>(std::move(locks), options,
                                       [this, outcome](const Failure& failure, MultiLease leases) {
                                         EXPECT_FALSE(engine_->inside_task());
                                         ++outcome->calls;
                                         outcome->failure = failure;
                                         outcome->leases = std::move(leases);
                                         outcome->at = engine_->now();
                                       })
        ->begin();
    engine_->run();
    return outcome;
  }
  std::shared_ptr<AllOutcome> acquire_all(const Names& names, const AcquireOptions& options = {}) {
    return acquire_all(locks(*core_, names), options);
  }
  MultiLease hold_all(const Names& names, const AcquireOptions& options = {}) {
    const auto outcome = acquire_all(names, options);
    while (outcome->calls == 0) grant(last());
    EXPECT_FALSE(outcome->failure.code) << outcome->failure.detail;
    return std::move(outcome->leases);
  }
  // Grants that many of the locks.
  void grant_first(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) grant(last());
  }
  [[nodiscard]] const std::string& asked_last() const { return last().request.name; }
  [[nodiscard]] Names released() const {
    Names names;
    for (const Grant& grant : service_->released) names.push_back(grant.name);
    return names;
  }
  void expect_nothing_left() const {
    EXPECT_EQ(service_->live_contentions(), 0U);
    EXPECT_EQ(stats().held, 0U);
    EXPECT_EQ(stats().waiting, 0U);
    EXPECT_EQ(engine_->pending_timers(), 0U);
  }
};

// --- Acquiring -------------------------------------------------------------------------------------------------------

TEST_F(MultiAcquisitionTest, Locks_AreAcquiredOneByOneInTheOrderOfNames) {
  const auto outcome = acquire_all({"c", "a", "b"});
  for (const char* name : {"a", "b", "c"}) {
    EXPECT_EQ(service_->live_contentions(), 1U);
    EXPECT_EQ(asked_last(), name);
    EXPECT_EQ(outcome->calls, 0);
    grant(last());
  }
  ASSERT_EQ(outcome->calls, 1);
  EXPECT_FALSE(outcome->failure.code);
  ASSERT_EQ(outcome->leases.size(), 3U);
  EXPECT_TRUE(outcome->leases.held());
  EXPECT_EQ(outcome->leases[0].name(), "c") << "in the order in which they were named";
  EXPECT_EQ(outcome->leases.token(0), FencingToken(3));
  EXPECT_EQ(outcome->leases[1].name(), "a");
  EXPECT_EQ(outcome->leases.token(1), FencingToken(1));
}

// One row for each way to fail; each is tried at each of three locks.
// Shows: several-locks
TEST_F(MultiAcquisitionTest, FailureAtAnyLock_LeavesNothing) {
  struct Way {
    const char* name;
    AcquireOptions options;
    std::error_code expected;
    std::function<void()> fail;
  };
  std::stop_source stop;
  const std::vector<Way> ways = {
      {"busy", {.wait = 0s}, errc::timed_out, [&] { busy(); }},
      {"timed out", {.wait = 5s}, errc::timed_out, [&] { busy(), engine_->advance(5s); }},
      {"unreachable", {.wait = 5s}, errc::unavailable, [&] { engine_->advance(5s); }},
      {"failed", {}, errc::access_denied, [&] { task([&] {
                                                  last().fail({errc::access_denied, "no right"});
                                                }); }},
      {"cancelled", {}, errc::cancelled, [&] { stop.request_stop(), engine_->run(); }},
  };
  const Names names{"a", "b", "c"};
  for (const Way& way : ways) {
    for (std::size_t k = 0; k < names.size(); ++k) {
      SCOPED_TRACE(std::string(way.name) + " at " + names[k]);
      service_->released.clear();
      stop = {};
      AcquireOptions options = way.options;
      options.cancel = stop.get_token();
      const auto outcome = acquire_all(names, options);
      grant_first(k);
      way.fail();
      ASSERT_EQ(outcome->calls, 1);
      EXPECT_EQ(outcome->failure.code, way.expected);
      EXPECT_NE(outcome->failure.detail.find('"' + names[k] + '"'), std::string::npos) << outcome->failure.detail;
      EXPECT_FALSE(outcome->leases.has_value());
      EXPECT_EQ(released(), Names(names.rend() - static_cast<std::ptrdiff_t>(k), names.rend())) << "in reverse order";
      expect_nothing_left();
    }
  }
}

TEST_F(MultiAcquisitionTest, Deadline_IsOneForAllLocks) {
  const TimePoint start = now();
  const auto late = acquire_all({"a", "b"}, {.wait = 5s});
  engine_->advance(3s);
  grant(last());
  busy();
  engine_->advance(10s);
  ASSERT_EQ(late->calls, 1);
  EXPECT_EQ(late->failure.code, errc::timed_out);
  EXPECT_EQ(late->at, start + 5s);
  const auto outcome = acquire_all({"a", "b"}, {.wait = 1s});
  EXPECT_TRUE(last().request.wait);
  engine_->sleep_through(1s);  // nothing was heard of the service yet
  grant(last());
  ASSERT_EQ(asked_last(), "b");
  EXPECT_FALSE(last().request.wait) << "a lock that is requested at the deadline is tried once";
  grant(last());
  EXPECT_TRUE(outcome->leases.held());
}

TEST_F(MultiAcquisitionTest, WrongOptionsOrCancellation_SendNoRequest) {
  std::stop_source stop;
  stop.request_stop();
  const std::vector<std::pair<AcquireOptions, errc>> rows = {{{.wait = -1s}, errc::invalid_argument},
                                                             {{.lease = 1ms}, errc::invalid_argument},
                                                             {{.cancel = stop.get_token()}, errc::cancelled}};
  for (const auto& [options, expected] : rows) {
    const auto outcome = acquire_all({"a", "b"}, options);
    EXPECT_EQ(outcome->calls, 1);
    EXPECT_EQ(outcome->failure.code, expected);
  }
  EXPECT_TRUE(service_->contends.empty());
}

// Shows: several-locks
TEST_F(MultiAcquisitionTest, LossOfTheFirstLease_EndsTheWaitForTheLast) {
  struct Way {
    const char* name;
    std::function<void(const OwnerId& first)> lose;
    Names released;
  };
  const std::vector<Way> ways = {{"it runs out", [&](auto&) { engine_->advance(10s); }, {"b", "a"}},
                                 {"the process was stopped, and the last grant arrives before any timer",
                                  [&](auto&) {
                                    engine_->manual_clock().advance(11s);
                                    grant(last());
                                  },
                                  {"c", "b", "a"}},
                                 {"it was stolen, and is another owner's by now",
                                  [&](auto& first) {
                                    task([&] { service_->host().lost(first, {errc::lost, "stolen"}); });
                                  },
                                  {"b"}}};
  for (const Way& way : ways) {
    SCOPED_TRACE(way.name);
    service_->released.clear();
    const auto outcome = acquire_all({"a", "b", "c"}, {.lease = 10s, .renew = false});
    const OwnerId first = last().request.owner;
    grant_first(1);
    engine_->advance(5s);
    grant_first(1);
    busy();
    way.lose(first);
    ASSERT_EQ(outcome->calls, 1);
    EXPECT_EQ(outcome->failure.code, errc::lost);
    EXPECT_TRUE(outcome->failure.detail.starts_with("lock \"a\" was lost before ")) << outcome->failure.detail;
    EXPECT_EQ(released(), way.released);
    expect_nothing_left();
  }
}

// Two clients, each with an engine and a service of its own.
class MultiAcquisitionOfTwoClientsTest : public MultiAcquisitionTest {
 protected:
  void SetUp() override {
    MultiAcquisitionTest::SetUp();
    other_engine_ = std::make_shared<test::ManualEngine>(2, engine_->shared_clock());
    other_service_ = std::make_shared<test::FakeService>();
    other_service_->on_release = service_->on_release;
    other_service_->capabilities.max_lease = 1h;
    other_core_ = ClientCore::create(other_engine_, Url::parse("fake://other"), options_, other_service_->factory());
  }
  void TearDown() override {
    if (other_core_) close_other();
    MultiAcquisitionTest::TearDown();
  }
  void close_other() {
    other_core_->close();
    run();
    other_core_.reset();
  }
  void run() {
    for (int i = 0; i < 3; ++i) {
      engine_->run();
      other_engine_->run();
    }
  }
  // "a" here, "b" there, "c" here.
  std::shared_ptr<AllOutcome> begin() {
    auto outcome = acquire_all(
        std::make_shared<const LockPlaces>(std::vector<LockPlace>{{core_, "c"}, {other_core_, "b"}, {core_, "a"}}));
    run();
    return outcome;
  }
  void grant_here() {
    grant(last());
    run();
  }
  void grant_there() {
    EXPECT_TRUE(other_engine_->dispatch([&] {
      auto& contend = other_service_->last_contend();
      contend.grant(other_service_->grant_of(contend.request));
    }));
    run();
  }

  // "a" is held here, and "b" is waited for there.
  void expect_the_end_by(const std::function<void()>& closing, const char* named) {
    const auto outcome = begin();
    grant_here();
    ASSERT_EQ(other_service_->live_contentions(), 1U);
    closing();
    run();
    ASSERT_EQ(outcome->calls, 1);
    EXPECT_EQ(outcome->failure.code, errc::closed);
    EXPECT_NE(outcome->failure.detail.find(named), std::string::npos) << outcome->failure.detail;
    EXPECT_EQ(other_service_->live_contentions(), 0U);
    EXPECT_EQ(released(), Names{"a"});
  }

  std::shared_ptr<test::ManualEngine> other_engine_;
  std::shared_ptr<test::FakeService> other_service_;
  std::shared_ptr<ClientCore> other_core_;
};

TEST_F(MultiAcquisitionOfTwoClientsTest, LeaseTooLongForOne_IsRefused) {
  const auto outcome = acquire_all(
      std::make_shared<const LockPlaces>(std::vector<LockPlace>{{core_, "a"}, {other_core_, "b"}}), {.lease = 2h});
  run();
  ASSERT_EQ(outcome->calls, 1);
  EXPECT_EQ(outcome->failure.code, errc::invalid_argument);
  EXPECT_NE(outcome->failure.detail.find("lock \"b\": lease"), std::string::npos) << outcome->failure.detail;
  EXPECT_TRUE(service_->contends.empty());
}

TEST_F(MultiAcquisitionOfTwoClientsTest, LocksOfOneName_AreAcquiredInTheOrderOfTheirUrls) {
  const LockPlace here{core_, "x"};  // fake://host comes before fake://other
  const LockPlace there{other_core_, "x"};
  for (const bool here_first : {true, false}) {
    const auto outcome = acquire_all(std::make_shared<const LockPlaces>(
        here_first ? std::vector<LockPlace>{here, there} : std::vector<LockPlace>{there, here}));
    EXPECT_EQ(service_->live_contentions(), 1U);
    EXPECT_EQ(other_service_->live_contentions(), 0U);
    grant_here();
    grant_there();
    EXPECT_TRUE(outcome->leases.held());
  }
}

TEST_F(MultiAcquisitionOfTwoClientsTest, CloseOfTheHolding_EndsTheWaitAndReleases) {
  expect_the_end_by([this] { close(); }, "\"a\"");
}

TEST_F(MultiAcquisitionOfTwoClientsTest, CloseOfTheWaiting_EndsTheWaitAndReleases) {
  expect_the_end_by([this] { close_other(); }, "\"b\"");
}

// The refusal comes inside the task that granted the lock before; the handler (see acquire_all) runs outside of it.
TEST_F(MultiAcquisitionOfTwoClientsTest, ClosedClient_IsReportedOutsideTasks) {
  const auto outcome = begin();
  EXPECT_EQ(outcome->calls, 0);
  close_other();
  EXPECT_EQ(outcome->calls, 0) << "its lock was not asked for yet";
  grant_here();
  ASSERT_EQ(outcome->calls, 1);
  EXPECT_EQ(outcome->failure.code, errc::closed);
  EXPECT_EQ(released(), Names{"a"});
  expect_nothing_left();
}

TEST_F(MultiAcquisitionOfTwoClientsTest, ReleaseOnTheEngineThreadOfEither_DoesNotWait) {
  for (const bool by_destructor : {false, true}) {
    service_->on_release = nullptr;
    other_service_->on_release = nullptr;
    const auto outcome = begin();
    grant_here();
    grant_there();
    grant_here();
    ASSERT_EQ(outcome->calls, 1);
    ASSERT_TRUE(outcome->leases.held());
    service_->released.clear();
    other_service_->released.clear();
    const TimePoint start = now();
    core_->context().notifier->complete([&] {
      if (by_destructor) {
        outcome->leases = MultiLease();
      } else {
        std::error_code ec;
        EXPECT_FALSE(outcome->leases.release(ec));
        EXPECT_EQ(ec, std::errc::resource_deadlock_would_occur);
      }
    });
    run();
    EXPECT_EQ(now(), start);
    EXPECT_EQ(outcome->leases.held(), !by_destructor) << "what is refused releases none";
    EXPECT_EQ(released(), by_destructor ? (Names{"c", "a"}) : Names());
    EXPECT_EQ(other_service_->released.size(), by_destructor ? 1U : 0U);
    confirm_releases();
    other_service_->on_release = service_->on_release;
  }
}

// --- Held ------------------------------------------------------------------------------------------------------------

TEST_F(MultiAcquisitionTest, ExpiredLease_IsALossAtTheFirstCall) {
  const MultiLease leases = hold_all({"a", "b"}, {.lease = 10s, .renew = false});
  engine_->manual_clock().advance(11s);
  EXPECT_FALSE(leases.held());
  EXPECT_TRUE(leases.lost().stop_requested());
  const Lease lease = hold();
  lose(lease);
  const std::stop_source signal_of_all;
  LeaseRecord::of(lease)->join(signal_of_all);
  EXPECT_TRUE(signal_of_all.stop_requested());
}

TEST_F(MultiAcquisitionTest, LossCallback_MayDestroyTheLease) {
  std::optional<MultiLease> destroyed = hold_all({"a", "b"});
  const std::stop_callback on_loss(destroyed->lost(), [&] { destroyed.reset(); });
  lose((*destroyed)[0]);
  EXPECT_FALSE(destroyed.has_value());
  EXPECT_EQ(released(), Names{"b"});
  expect_nothing_left();
  MultiLease leases = hold_all({"a", "b"});
  close();
  EXPECT_FALSE(leases.held());
  EXPECT_TRUE(leases.lost().stop_requested());
  EXPECT_EQ(leases[1].name(), "b");
  EXPECT_FALSE(leases.release());
}

// --- Release ---------------------------------------------------------------------------------------------------------

TEST_F(MultiAcquisitionTest, FailedRelease_NamesItsLockAndReleasesTheOthers) {
  MultiLease leases = hold_all({"b", "a", "c"});
  service_->on_release = [](auto& release) {
    if (release.grant.name == "b") {
      release.done({.status = ReleaseStatus::failed, .failure = {errc::ambiguous, "no answer"}});
    } else {
      release.done({.status = ReleaseStatus::released});
    }
  };
  const Failure thrown = test::thrown_by([&] { (void)leases.release(); });
  EXPECT_EQ(thrown.code, errc::ambiguous);
  EXPECT_EQ(thrown.detail, "lock \"b\": no answer");
  EXPECT_EQ(released(), (Names{"c", "b", "a"}));
  hold_all({"b", "a", "c"}).async_release([](const Failure& failure, bool were_ours) {
    EXPECT_EQ(failure.code, errc::ambiguous);
    EXPECT_EQ(failure.detail, "lock \"b\": no answer");
    EXPECT_FALSE(were_ours);
  });
  engine_->run();
  expect_nothing_left();
}

TEST_F(MultiAcquisitionTest, UnansweredReleases_EndInTimeForAllTogether) {
  const Names reversed{"c", "b", "a"};
  std::optional<MultiLease> leases = hold_all({"a", "b", "c"});
  service_->on_release = nullptr;
  TimePoint start = now();
  std::error_code ec;
  EXPECT_FALSE(leases->release(ec));
  EXPECT_EQ(ec, errc::unavailable);
  EXPECT_EQ(now(), start + 2500ms);
  EXPECT_EQ(std::exchange(service_->released, {}).size(), 3U);

  leases = hold_all({"a", "b", "c"});
  start = now();
  leases.reset();
  EXPECT_EQ(now(), start + 2s) << "the close timeout";
  EXPECT_EQ(released(), reversed);

  service_->on_contend = [this](auto& contend) {
    if (contend.request.name == "c") return contend.busy();
    contend.grant(service_->grant_of(contend.request));
  };
  start = now();
  const Failure failure = MultiLockImpl({{core_, "a"}, {core_, "b"}, {core_, "c"}}).acquire({.wait = 0s}).failure;
  EXPECT_EQ(failure.code, errc::timed_out);
  EXPECT_EQ(failure.detail, "lock \"c\" is already held");
  EXPECT_EQ(now(), start + 2s);
}

TEST_F(MultiAcquisitionTest, AsynchronousRelease_AnswersWhenAllWereAnswered) {
  MultiLease leases = hold_all({"a", "b"});
  service_->on_release = nullptr;
  int calls = 0;
  bool ours = false;
  leases.async_release([&](std::error_code ec, bool were_ours) {
    EXPECT_FALSE(ec);
    EXPECT_FALSE(engine_->inside_task());
    ours = were_ours;
    ++calls;
  });
  EXPECT_FALSE(leases.held());
  engine_->run();
  answer_release({.status = ReleaseStatus::released});
  EXPECT_EQ(calls, 0);
  answer_release({.status = ReleaseStatus::released});
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(ours);
  const TimePoint start = now();
  leases = MultiLease();
  EXPECT_EQ(now(), start) << "nothing is left to wait for";
  confirm_releases();
  service_->released.clear();
  leases = hold_all({"a", "b"});
  lose(leases[0]);
  calls = 0;
  MultiLease empty;
  for (MultiLease* const none : {&leases, &leases, &empty}) {
    none->async_release([&](std::error_code ec, bool were_ours) {
      EXPECT_FALSE(ec || were_ours) << "it was lost, released, or empty";
      ++calls;
    });
    engine_->run();
  }
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(released(), Names{"b"});
}

// --- Waiting for all -------------------------------------------------------------------------------------------------

TEST_F(MultiAcquisitionTest, BlockingAcquireInAHandler_IsRefused) {
  const MultiLockImpl lock({{core_, "a"}, {core_, "b"}});
  core_->context().notifier->complete([&] {
    EXPECT_EQ(lock.acquire({}).failure.code, std::errc::resource_deadlock_would_occur);
    EXPECT_EQ(lock.acquire({.lease = 1ns}).failure.code, errc::invalid_argument) << "wrong options are reported first";
  });
  engine_->run();
  EXPECT_TRUE(service_->contends.empty());
  expect_nothing_left();
}

}  // namespace
}  // namespace dlock::detail
