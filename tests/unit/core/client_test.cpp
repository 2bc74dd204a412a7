// Client and connect() with a real engine.
#include <dlock/client.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <dlock/error.hpp>
#include <dlock/log.hpp>
#include <dlock/spi/backend.hpp>

#include "tests/support/fake_backend.hpp"
#include "tests/support/recording_observer.hpp"
#include "tests/support/simple_backend.hpp"
#include "torture/rig/hang_guard.hpp"
#include "util/event.hpp"

namespace dlock {
namespace {

using namespace std::chrono_literals;

class ClientTest : public testing::Test {
 protected:
  [[nodiscard]] Client make(ClientOptions options = {}, std::string_view url = "simple://") {
    if (options.label.empty()) options.label = "test";
    return connect(url, std::move(options), service_->factory());
  }
  // The words with which connect() refuses.
  std::string refusal(ClientOptions options, std::string_view url = "simple://") {
    try {
      (void)make(std::move(options), url);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), errc::invalid_argument);
      return e.detail();
    }
    ADD_FAILURE() << "accepted";
    return {};
  }
  std::shared_ptr<test::SimpleService> service_ = std::make_shared<test::SimpleService>();
};

TEST_F(ClientTest, SaysWhoItIsWithoutSecrets) {
  const Client client = make({}, "simple://u:hunter2@h");
  EXPECT_EQ(client.url(), "simple://u:***@h");
  EXPECT_EQ(client.holder().substr(client.holder().rfind(':')), ":test");
  EXPECT_NE(client.holder().find(':' + std::to_string(getpid()) + ':'), std::string::npos);
  EXPECT_EQ(client.capabilities().backend, "simple");
}

// The shape of a busy asynchronous program: each handler begins the next acquire at once.
TEST_F(ClientTest, LeasesAreRenewedAndWaitsEndThoughHandlersAlwaysStartMore) {
  Client client = make();
  DistributedLock held = client.make_lock("held");
  const Lease lease = held.acquire({.lease = 2s});
  DistributedLock busy = client.make_lock("busy");
  std::atomic<bool> enough = false;
  util::Event ended;
  const auto give_up = std::chrono::steady_clock::now() + rig::hang_guard;
  std::function<void()> next = [&] {
    if (enough || std::chrono::steady_clock::now() > give_up) return ended.set();
    busy.async_acquire({}, [&](std::error_code, Lease got) {
      auto kept = std::make_shared<Lease>(std::move(got));
      kept->async_release([&, kept](std::error_code, bool) { next(); });
    });
  };
  next();
  EXPECT_FALSE(client.make_lock("held").try_acquire_for(100ms)) << "the lock is held, and the wait for it ends";
  while (client.stats().renewed == 0 && !ended.is_set()) std::this_thread::yield();
  enough = true;
  ASSERT_TRUE(ended.wait(2 * rig::hang_guard));
  EXPECT_GE(client.stats().renewed, 1U);
  EXPECT_TRUE(lease.held());
}

TEST_F(ClientTest, TheCommonParametersComeFromTheUrl) {
  const Client client =
      make({}, "simple://?label=billing&lease=5s&response_timeout=1s&connect_timeout=1s&close_timeout=1s");
  EXPECT_NE(client.holder().find(":billing"), std::string::npos);
  const Lease lease = client.make_lock("x").acquire();
  EXPECT_LE(lease.valid_until(), LeaseClock::now() + 5s);
}

TEST_F(ClientTest, WrongOptionsAreRefusedByName) {
  EXPECT_NE(refusal({.lease = 0s}).find("lease"), std::string::npos);
  EXPECT_NE(refusal({.lease = -1s}).find("lease"), std::string::npos);
  EXPECT_NE(refusal({.lease = 1ms}).find("lease"), std::string::npos) << "below the backend's minimum";
  EXPECT_NE(refusal({.lease = forever}).find("lease"), std::string::npos);
  EXPECT_NE(refusal({.response_timeout = 0s}).find("response_timeout"), std::string::npos);
  EXPECT_NE(refusal({.connect_timeout = -1s}).find("connect_timeout"), std::string::npos);
  EXPECT_NE(refusal({.close_timeout = -1s}).find("close_timeout"), std::string::npos);
  EXPECT_NE(refusal({.response_timeout = std::chrono::duration<double>(std::numeric_limits<double>::quiet_NaN())})
                .find("response_timeout"),
            std::string::npos);
  EXPECT_NE(refusal({.label = "a\nb"}).find("label"), std::string::npos);
  EXPECT_NE(refusal({.label = std::string(65, 'x')}).find("label"), std::string::npos);
  EXPECT_NE(refusal({}, "simple://?lease=5").find("lease"), std::string::npos);
  EXPECT_NE(refusal({}, "simple://?close_timeout=x").find("close_timeout"), std::string::npos);
  EXPECT_NE(refusal({}, "simple://?leese=5s").find("leese"), std::string::npos);
  EXPECT_NE(refusal({}, "simple").find("scheme"), std::string::npos);
}

TEST_F(ClientTest, AnUnknownSchemeIsRefused) {
  EXPECT_THROW((void)connect("nonesuch://h"), Error);
}

TEST_F(ClientTest, WhatAFactoryThrowsComesOutOfConnect) {
  const auto throws = [](auto what) {
    return [what](BackendHost&, const BackendConfig&) -> std::unique_ptr<Backend> { throw what; };
  };
  EXPECT_THROW((void)connect("x://", {}, throws(Error(errc::access_denied, "no"))), Error);
  EXPECT_THROW((void)connect("x://", {}, throws(std::runtime_error("no"))), std::runtime_error);
}

TEST_F(ClientTest, AFactoryThatMakesNothingIsAnError) {
  const auto nothing = [](BackendHost&, const BackendConfig&) -> std::unique_ptr<Backend> { return nullptr; };
  EXPECT_THROW((void)connect("x://", {}, nothing), Error);
}

TEST_F(ClientTest, NamesAreCheckedWhereTheyEnter) {
  const Client client = make();
  for (const std::string& bad : {std::string(), std::string(513, 'x'), std::string("a\0b", 3), std::string("\xff")}) {
    EXPECT_THROW((void)client.make_lock(bad), Error);
    EXPECT_THROW((void)client.inspect(bad), Error);
    EXPECT_THROW((void)client.break_lock(bad), Error);
  }
  EXPECT_EQ(client.make_lock(std::string(512, 'x')).name().size(), 512U);
}

TEST_F(ClientTest, WhatTheBackendCannotDoIsUnsupported) {
  const Client client = make();
  for (const std::function<void()>& question : std::vector<std::function<void()>>{
           [&] { (void)client.inspect("x"); }, [&] { (void)client.list(); }, [&] { (void)client.break_lock("x"); }}) {
    try {
      question();
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), errc::unsupported);
      EXPECT_NE(e.detail().find("simple"), std::string::npos);
    }
  }
  EXPECT_TRUE(client.diagnose().empty());
}

TEST_F(ClientTest, ABackendThatNeedsNothingInItsServiceMakesNothing) {
  EXPECT_TRUE(make().initialize().empty());
}

// Does nothing but answer initialize().
class TablesBackend final : public Backend {
 public:
  explicit TablesBackend(Result<std::vector<std::string>> made) : made_(std::move(made)) {}
  [[nodiscard]] Capabilities capabilities() const noexcept override { return {.backend = "tables"}; }
  std::unique_ptr<Contention> contend(const LockRequest& /*request*/, GrantSink& sink) override {
    sink.busy();
    return nullptr;
  }
  void renew(const Grant& /*grant*/, RenewHandler /*done*/) override {}
  void release(const Grant& /*grant*/, ReleaseHandler /*done*/) override {}
  void initialize(Handler<std::vector<std::string>> done) override { done(made_); }

 private:
  const Result<std::vector<std::string>> made_;
};

TEST_F(ClientTest, TellsWhatTheBackendMadeInItsServiceOrWhyNot) {
  const auto with = [](const Result<std::vector<std::string>>& made) {
    return connect("tables://", {},
                   [made](BackendHost&, const BackendConfig&) { return std::make_unique<TablesBackend>(made); });
  };
  EXPECT_EQ(with(std::vector<std::string>{"a", "b"}).initialize(), (std::vector<std::string>{"a", "b"}));
  try {
    (void)with(Failure{errc::access_denied, "not you"}).initialize();
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), errc::access_denied);
    EXPECT_EQ(e.detail(), "not you");
  }
}

// Remembers a lock, and forgets names that begin with "old".
class ForgetfulBackend final : public Backend {
 public:
  explicit ForgetfulBackend(LockInfo info) : info_(std::move(info)) {}
  [[nodiscard]] Capabilities capabilities() const noexcept override {
    return {.backend = "forgetful", .can_inspect = true, .can_forget = true};
  }
  std::unique_ptr<Contention> contend(const LockRequest& /*request*/, GrantSink& sink) override {
    sink.busy();
    return nullptr;
  }
  void renew(const Grant& /*grant*/, RenewHandler /*done*/) override {}
  void release(const Grant& /*grant*/, ReleaseHandler /*done*/) override {}
  void inspect(LockKind /*kind*/, const std::string& name, Handler<LockInfo> done) override {
    LockInfo info = info_;
    info.name = name;
    done(info);
  }
  void forget(const Forgetting& what, Handler<std::vector<std::string>> done) override {
    EXPECT_GE(what.idle, least_idle);
    if (what.name.empty()) return done(std::vector<std::string>{"old/2", "old/1"});
    done(what.name.starts_with("old") ? std::vector<std::string>{what.name} : std::vector<std::string>{});
  }

 private:
  const LockInfo info_;
};

TEST_F(ClientTest, TellsWhatWasForgottenOrWhyNot) {
  const auto with = [](const LockInfo& info) {
    return connect("forgetful://", {},
                   [info](BackendHost&, const BackendConfig&) { return std::make_unique<ForgetfulBackend>(info); });
  };
  const auto refusal = [&](const LockInfo& info) -> std::string {
    try {
      (void)with(info).forget("new");
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), errc::timed_out);
      return e.detail();
    }
    return "none";
  };
  EXPECT_TRUE(with({}).forget("old"));
  EXPECT_FALSE(with({}).forget("new"));
  EXPECT_EQ(refusal({.name = {}, .held = true, .holder = "host:1:x"}), "lock \"new\" is held by host:1:x");
  EXPECT_EQ(refusal({.name = {}, .held = true}), "lock \"new\" is held by an unknown client");
  EXPECT_EQ(refusal({.name = {}, .waiters = 1}), "lock \"new\" has waiters");
  EXPECT_NE(refusal({.name = {}, .token = FencingToken(42)}).find("its last token, 42"), std::string::npos);
  EXPECT_EQ(with({}).forget_idle(1min), (std::vector<std::string>{"old/1", "old/2"}));
  EXPECT_EQ(with({}).forget_idle(forever).size(), 2U);
}

TEST_F(ClientTest, ForgetsNothingThatItIsAskedForWrongly) {
  const Client client = make();
  for (const std::chrono::nanoseconds idle : {-1ns, 0ns, std::chrono::nanoseconds(1min) - 1ns}) {
    try {
      (void)client.forget_idle(idle);
      ADD_FAILURE() << "accepted";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), errc::invalid_argument);
    }
  }
  try {
    (void)client.forget("x");
    ADD_FAILURE() << "forgotten";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), errc::unsupported);
  }
}

TEST_F(ClientTest, WhatIsNoNameIsNeverAskedAbout) {
  const Client client = make();
  const auto expect_refused = [](const std::function<void()>& ask) {
    try {
      ask();
      ADD_FAILURE() << "accepted";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), errc::invalid_argument) << e.what();
    }
  };
  for (const char* name : {"", "a\nb"}) {
    expect_refused([&] { (void)client.inspect(name); });
    expect_refused([&] { (void)client.break_lock(name); });
    expect_refused([&] { (void)client.forget(name); });  // an empty one would stand for all there are
  }
}

TEST_F(ClientTest, QuestionsInAHandlerAreRefused) {
  const Client client = make();
  const auto code_of = [](const std::function<void()>& ask) {
    try {
      ask();
    } catch (const std::system_error& e) {
      return e.code();
    }
    return std::error_code();
  };
  util::Event done;
  client.make_lock("x").async_acquire({}, [&](std::error_code, const Lease&) {
    const std::vector<std::function<void()>> questions = {
        [&] { (void)client.inspect("x"); },    [&] { (void)client.list(); },
        [&] { (void)client.break_lock("x"); }, [&] { (void)client.forget("x"); },
        [&] { (void)client.forget_idle(1h); }, [&] { (void)client.diagnose(); },
        [&] { (void)client.initialize(); },    [&] { client.ping(1s); }};
    for (const auto& ask : questions) EXPECT_EQ(code_of(ask), std::errc::resource_deadlock_would_occur);
    EXPECT_EQ(code_of([&] { (void)client.inspect(""); }), errc::invalid_argument);
    done.set();
  });
  EXPECT_TRUE(done.wait(rig::hang_guard));
}

TEST_F(ClientTest, MayBeDestroyedInAHandler) {
  auto client = std::make_unique<Client>(make());
  DistributedLock lock = client->make_lock("x");
  DistributedLock rival = client->make_lock("x");
  util::Event done;
  util::Event waiter_done;
  std::optional<Lease> kept;
  lock.async_acquire({}, [&](std::error_code, Lease lease) {
    kept = std::move(lease);
    rival.async_acquire({}, [&](std::error_code ec, const Lease&) {
      EXPECT_EQ(ec, errc::closed);
      waiter_done.set();
    });
    client.reset();
    done.set();
  });
  ASSERT_TRUE(done.wait(rig::hang_guard));
  EXPECT_TRUE(waiter_done.wait(rig::hang_guard));
  EXPECT_FALSE(kept->held());
  EXPECT_TRUE(kept->lost().stop_requested());
  std::error_code ec;
  EXPECT_FALSE(lock.acquire({}, ec).has_value());
  EXPECT_EQ(ec, errc::closed);
}

TEST_F(ClientTest, MayBeDestroyedByTheHandlerThatOwnsIt) {
  util::Event done;
  {
    auto client = std::make_unique<Client>(make());
    DistributedLock lock = client->make_lock("x");
    struct SetOnExit {
      explicit SetOnExit(util::Event& e) : event(e) {}
      ~SetOnExit() { event.set(); }
      util::Event& event;
    };
    lock.async_acquire(
        {}, [owned = std::move(client), at_end = std::make_unique<SetOnExit>(done)](std::error_code, const Lease&) {});
  }
  EXPECT_TRUE(done.wait(rig::hang_guard));
}

TEST_F(ClientTest, AssignmentClosesTheOldClient) {
  Client client = make();
  const Lease lease = client.make_lock("x").acquire();
  client = make();
  EXPECT_FALSE(lease.held());
  EXPECT_FALSE(service_->held("x"));
  const Lease again = client.make_lock("x").acquire();
  EXPECT_TRUE(again.held());
}

TEST_F(ClientTest, NoHandlerRunsAfterTheDestructor) {
  for (int round = 0; round < 50; ++round) {
    std::atomic<bool> gone = false;
    std::atomic<int> calls = 0;
    {
      const Client client = make();
      DistributedLock lock = client.make_lock("x");
      for (int i = 0; i < 20; ++i) {
        lock.async_acquire({}, [&](std::error_code, const Lease&) {
          EXPECT_FALSE(gone);
          ++calls;
        });
      }
    }
    gone = true;
    EXPECT_EQ(calls, 20) << "but each runs once";
  }
}

TEST_F(ClientTest, LocksAndLeasesMayOutliveIt) {
  std::optional<DistributedLock> lock;
  std::optional<Lease> lease;
  {
    const Client client = make();
    lock = client.make_lock("x");
    lease = client.make_lock("y").acquire();
    lock->lock();
  }
  EXPECT_FALSE(lease->held());
  EXPECT_FALSE(lease->release());
  EXPECT_FALSE(lock->lease().held());
  lock->unlock();
  EXPECT_THROW(lock->lock(), Error);
  std::error_code handler_ec;
  lock->async_acquire({}, [&](std::error_code ec, const Lease&) { handler_ec = ec; });
  EXPECT_EQ(handler_ec, errc::closed);
}

TEST_F(ClientTest, BlockedAcquiresEndWhenItIsDestroyed) {
  auto client = std::make_unique<Client>(make());
  const Lease lease = client->make_lock("x").acquire();
  std::vector<std::thread> threads;
  std::atomic<int> closed = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, lock = std::make_shared<DistributedLock>(client->make_lock("x"))] {
      std::error_code ec;
      (void)lock->acquire({}, ec);
      if (ec == errc::closed) ++closed;
    });
  }
  while (client->stats().waiting < 4) std::this_thread::yield();
  client.reset();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(closed, 4);
}

TEST_F(ClientTest, AHungServiceHoldsTheDestructorUpForTheCloseTimeoutOnly) {
  const auto hung = std::make_shared<test::FakeService>();
  hung->on_contend = [&](auto& contend) { contend.grant(hung->grant_of(contend.request)); };
  Lease lease;
  {
    const Client client = connect("fake://", {.label = "test", .close_timeout = 20ms}, hung->factory());
    lease = client.make_lock("x").acquire();
  }
  EXPECT_EQ(hung->released.size(), 1U);
  EXPECT_FALSE(lease.held());
}

TEST_F(ClientTest, WithoutACloseTimeoutNothingWaitsForAHungService) {
  const auto hung = std::make_shared<test::FakeService>();
  hung->on_contend = [&](auto& contend) { contend.grant(hung->grant_of(contend.request)); };
  hung->on_close = [](const std::function<void()>& /*never*/) {};
  std::optional<Client> client = connect("fake://", {.label = "test", .close_timeout = 0s}, hung->factory());
  for (int i = 0; i < 5; ++i) (void)client->make_lock("x" + std::to_string(i)).acquire();
  EXPECT_EQ(hung->released.size(), 5U) << "sent, and not waited for";
  (void)client->make_multi_lock({"y", "z"}).acquire();
  EXPECT_EQ(hung->released.size(), 7U);
  DistributedLock lock = client->make_lock("u");
  lock.lock();
  lock.unlock();
  const Lease held = client->make_lock("h").acquire();
  client.reset();
  EXPECT_EQ(hung->released.size(), 9U);
  EXPECT_FALSE(hung->has_backend());
}

// --- Ping ------------------------------------------------------------------------------------------------------------

class PingTest : public testing::Test {
 protected:
  PingTest() { service_->capabilities.can_inspect = true; }

  [[nodiscard]] Client make() { return connect("fake://", {.label = "test"}, service_->factory()); }
  // The first answers are these failures, then it is well.
  void answer_with(std::vector<Failure> failures) {
    service_->on_inspect = [failures = std::move(failures), i = std::size_t{0}](const std::string& name) mutable {
      if (i < failures.size()) return Result<LockInfo>(failures[i++]);
      return Result<LockInfo>(LockInfo{.name = name});
    };
  }
  static Failure failure_of(const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& e) {
      return {e.code(), e.detail()};
    }
    return {};
  }

  std::shared_ptr<test::FakeService> service_ = std::make_shared<test::FakeService>();
};

TEST_F(PingTest, AsksOnceAboutANameThatNobodyUses) {
  std::vector<std::string> names;
  service_->on_inspect = [&](const std::string& name) {
    names.push_back(name);
    return Result<LockInfo>(LockInfo{.name = name});
  };
  const Client client = make();
  client.ping(10s);
  client.ping(0s);
  client.ping(forever, "mine");
  EXPECT_EQ(names, (std::vector<std::string>{"dlock-ping", "dlock-ping", "mine"}));
  EXPECT_TRUE(service_->contends.empty());
}

TEST_F(PingTest, RepeatsItWhileTheServiceIsUnavailable) {
  answer_with({{errc::unavailable, "down"}, {errc::unavailable, "starting"}});
  make().ping(1min);
  EXPECT_EQ(service_->asked, 3U);
}

TEST_F(PingTest, GivesUpAtTheEndOfTheWaitWithTheLastReason) {
  service_->on_inspect = [](const std::string& /*name*/) {
    return Result<LockInfo>(Failure{errc::unavailable, "connection refused"});
  };
  const Client client = make();
  for (const Duration wait : {Duration(), Duration(100ms)}) {
    const Failure failure = failure_of([&] { client.ping(wait); });
    EXPECT_EQ(failure.code, errc::unavailable);
    EXPECT_EQ(failure.detail, "connection refused");
  }
}

TEST_F(PingTest, AServiceThatDoesNotAnswerIsUnavailable) {
  const Client client = make();
  const Failure failure = failure_of([&] { client.ping(20ms); });
  EXPECT_EQ(failure.code, errc::unavailable);
  EXPECT_EQ(failure.detail, "the service did not answer in time");
}

TEST_F(PingTest, WhatARetryDoesNotHelpIsReportedAtOnce) {
  for (const errc code : {errc::access_denied, errc::protocol, errc::invalid_argument}) {
    service_->asked = 0;
    answer_with({{code, "no"}});
    EXPECT_EQ(failure_of([&] { make().ping(forever); }).code, code);
    EXPECT_EQ(service_->asked, 1U);
  }
  service_->capabilities.can_inspect = false;
  EXPECT_EQ(failure_of([&] { make().ping(forever); }).code, errc::unsupported);
}

TEST_F(PingTest, RefusesWhatMakesNoSense) {
  const Client client = make();
  EXPECT_EQ(failure_of([&] { client.ping(-1s); }).code, errc::invalid_argument);
  EXPECT_EQ(failure_of([&] { client.ping(1s, ""); }).code, errc::invalid_argument);
  EXPECT_EQ(service_->asked, 0U);
}

// --- Life ------------------------------------------------------------------------------------------------------------

TEST_F(ClientTest, TheObserverHearsOfALife) {
  const auto observer = std::make_shared<test::RecordingObserver>();
  {
    const Client client = make({.observer = observer});
    EXPECT_TRUE(client.make_lock("x").acquire().release());
    const Lease lease = client.make_lock("y").acquire();
  }
  const auto events = observer->events();
  EXPECT_EQ(events, (std::vector<std::string>{"acquired x", "released x", "acquired y", "released y"}));
}

TEST_F(ClientTest, WritesItsEventsToAStreamThatOnlyOutlivesTheClient) {
  std::ostringstream stream;
  {
    const Client client = make({.observer = log_to(stream)});
    EXPECT_TRUE(client.make_lock("x").acquire().release());
  }
  EXPECT_EQ(stream.str().rfind("dlock: acquired \"x\", token 1, after ", 0), 0U) << stream.str();
  EXPECT_NE(stream.str().find("\ndlock: released \"x\", token 1, after "), std::string::npos) << stream.str();
}

// The counter is not atomic: only the lock protects it. Under TSan the lock must also publish it.
TEST_F(ClientTest, ManyThreadsShareAClient) {
  const Client client = make();
  int counter = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      DistributedLock lock = client.make_lock("x");
      for (int i = 0; i < 50; ++i) {
        Lease lease = lock.acquire();
        ++counter;
        EXPECT_TRUE(lease.release());
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(counter, 400);
  EXPECT_EQ(client.stats().acquired, 400U);
  EXPECT_EQ(client.stats().released, 400U);
  EXPECT_EQ(client.stats().held, 0U);
  EXPECT_EQ(client.stats().waiting, 0U);
}

TEST_F(ClientTest, CancellingRacesWithEverything) {
  const Client client = make();
  for (int round = 0; round < 200; ++round) {
    std::stop_source stop;
    DistributedLock lock = client.make_lock("x");
    std::optional<Lease> blocker;
    if (round % 2 == 0) blocker = lock.acquire();
    std::thread canceller([&] { stop.request_stop(); });
    std::error_code ec;
    const Lease lease = lock.acquire({.cancel = stop.get_token()}, ec);
    canceller.join();
    EXPECT_EQ(lease.held(), !ec);
    if (ec) {
      EXPECT_EQ(ec, errc::cancelled);
    }
  }
  EXPECT_EQ(client.stats().waiting, 0U);
}

TEST_F(ClientTest, RandomNumbersMayComeFromTheProgram) {
  std::atomic<std::uint64_t> n = 0;
  const Client client = make({.random = [&] { return ++n; }});
  const Lease lease = client.make_lock("x").acquire();
  EXPECT_EQ(lease.owner(), OwnerId(1, 2));
}

}  // namespace
}  // namespace dlock
