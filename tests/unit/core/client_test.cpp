// Client and connect() with a real engine, and ManualClock::advance() as the tests of programs use it. What the
// conformance suite tests of clients is not tested here again.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <limits>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <system_error>
#include <thread>

#include <dlock/dlock.hpp>
#include <dlock/error.hpp>

#include "tests/support/fake_backend.hpp"
#include "tests/support/refusals.hpp"
#include "tests/support/simple_backend.hpp"
#include "torture/rig/hang_guard.hpp"
#include "torture/rig/scratch_directory.hpp"
#include "util/event.hpp"

namespace dlock {
namespace {

using namespace std::chrono_literals;
using test::thrown_by;

class ClientTest : public testing::Test {
 protected:
  [[nodiscard]] Client make(ClientOptions options = {}, std::string_view url = "simple://") {
    if (options.label.empty()) options.label = "test";
    return connect(url, std::move(options), service_->factory());
  }
  std::shared_ptr<test::SimpleService> service_ = std::make_shared<test::SimpleService>();
};

TEST_F(ClientTest, CommonParameters_AreTakenFromTheUrlWithoutSecrets) {
  const Client client = make({}, "simple://u:hunter2@h");
  EXPECT_EQ(client.url(), "simple://u:***@h");
  EXPECT_EQ(client.holder().substr(client.holder().rfind(':')), ":test");
  EXPECT_NE(client.holder().find(':' + std::to_string(getpid()) + ':'), std::string::npos);
  EXPECT_EQ(client.capabilities().backend, "simple");
  const Client other =
      make({}, "simple://?label=billing&lease=5s&response_timeout=1s&connect_timeout=1s&close_timeout=1s");
  EXPECT_NE(other.holder().find(":billing"), std::string::npos);
  EXPECT_LE(other.make_lock("x").acquire().valid_until(), LeaseClock::now() + 5s);
  std::atomic<std::uint64_t> n = 0;
  const Client seeded = make({.random = [&] { return ++n; }});
  EXPECT_EQ(seeded.make_lock("x").acquire().owner(), OwnerId(1, 2)) << "random numbers may come from the program";
}

TEST_F(ClientTest, WrongOption_IsRefusedByName) {
  const Duration nan = std::chrono::duration<double>(std::numeric_limits<double>::quiet_NaN());
  struct Row {
    std::string named;
    ClientOptions options = {};
    std::string url = "simple://";
  };
  const std::vector<Row> rows = {{"lease", {.lease = 0s}},
                                 {"lease", {.lease = -1s}},
                                 {"lease", {.lease = 1ms}},  // below the backend's minimum
                                 {"lease", {.lease = forever}},
                                 {"response_timeout", {.response_timeout = 0s}},
                                 {"response_timeout", {.response_timeout = nan}},
                                 {"connect_timeout", {.connect_timeout = -1s}},
                                 {"close_timeout", {.close_timeout = -1s}},
                                 {"label", {.label = "a\nb"}},
                                 {"label", {.label = std::string(65, 'x')}},
                                 {"lease", {}, "simple://?lease=5"},
                                 {"close_timeout", {}, "simple://?close_timeout=x"},
                                 {"leese", {}, "simple://?leese=5s"},
                                 {"scheme", {}, "simple"}};
  for (const Row& row : rows) {
    const Failure failure = thrown_by([&] { (void)make(row.options, row.url); });
    EXPECT_EQ(failure.code, errc::invalid_argument) << row.named;
    EXPECT_NE(failure.detail.find(row.named), std::string::npos) << failure.detail;
  }
}

TEST_F(ClientTest, FailingFactory_IsAnError) {
  const auto throws = [](auto what) {
    return [what](BackendHost&, const BackendConfig&) -> std::unique_ptr<Backend> { throw what; };
  };
  EXPECT_THROW((void)connect("x://", {}, throws(Error(errc::access_denied, "no"))), Error);
  EXPECT_THROW((void)connect("x://", {}, throws(std::runtime_error("no"))), std::runtime_error);
  EXPECT_THROW((void)connect("x://", {}, [](auto&, auto&) { return std::unique_ptr<Backend>(); }), Error);
  EXPECT_THROW((void)connect("nonesuch://h"), Error);
}

// --- Questions -------------------------------------------------------------------------------------------------------

// The others: unit/memory/backend_test.cpp.
TEST_F(ClientTest, WrongOrUnsupportedQuestion_IsRefused) {
  const Client client = make();
  const Failure failure = thrown_by([&] { (void)client.list(); });
  EXPECT_EQ(failure.code, errc::unsupported);
  EXPECT_NE(failure.detail.find("simple"), std::string::npos);
  for (const std::chrono::nanoseconds idle : {-1ns, 0ns, std::chrono::nanoseconds(1min) - 1ns}) {
    EXPECT_EQ(thrown_by([&] { (void)client.forget_idle(idle); }).code, errc::invalid_argument);
  }
  EXPECT_TRUE(client.diagnose().empty());
  EXPECT_TRUE(client.initialize().empty());
}

TEST_F(ClientTest, QuestionInAHandler_IsRefused) {
  const Client client = make();
  util::Event done;
  client.make_lock("x").async_acquire({}, [&](std::error_code, const Lease&) {
    const std::vector<std::function<void()>> questions = {
        [&] { (void)client.inspect("x"); },    [&] { (void)client.list(); },
        [&] { (void)client.break_lock("x"); }, [&] { (void)client.forget("x"); },
        [&] { (void)client.forget_idle(1h); }, [&] { (void)client.diagnose(); },
        [&] { (void)client.initialize(); },    [&] { client.ping(1s); }};
    for (const auto& ask : questions) EXPECT_EQ(thrown_by(ask).code, std::errc::resource_deadlock_would_occur);
    EXPECT_EQ(thrown_by([&] { (void)client.inspect(""); }).code, errc::invalid_argument);
    done.set();
  });
  EXPECT_TRUE(done.wait(rig::hang_guard));
}

TEST_F(ClientTest, InitializeAndForget_ReturnNamesOrTheReason) {
  using Names = std::vector<std::string>;
  const auto service = std::make_shared<test::FakeService>();
  service->capabilities.can_inspect = service->capabilities.can_forget = true;
  const Client client = connect("fake://", {.label = "test"}, service->factory());
  service->made = Names{"a", "b"};
  EXPECT_EQ(client.initialize(), (Names{"a", "b"}));
  service->made = Failure{errc::access_denied, "not you"};
  const Failure denied = thrown_by([&] { (void)client.initialize(); });
  EXPECT_EQ(denied.code, errc::access_denied);
  EXPECT_EQ(denied.detail, "not you");
  service->on_forget = [](const Forgetting& what) {  // names that begin with "old"
    EXPECT_GE(what.idle, least_idle);
    if (what.name.empty()) return Names{"old/2", "old/1"};
    return what.name.starts_with("old") ? Names{what.name} : Names();
  };
  LockInfo info;
  service->on_inspect = [&info](const std::string& name) {
    info.name = name;
    return info;
  };
  EXPECT_TRUE(client.forget("old"));
  EXPECT_FALSE(client.forget("new"));
  EXPECT_EQ(client.forget_idle(1min), (Names{"old/1", "old/2"}));
  EXPECT_EQ(client.forget_idle(forever).size(), 2U);
  const std::vector<std::pair<LockInfo, std::string>> in_use = {
      {{.name = {}, .held = true, .holder = "host:1:x"}, "lock \"new\" is held by host:1:x"},
      {{.name = {}, .held = true}, "lock \"new\" is held by an unknown client"},
      {{.name = {}, .waiters = 1}, "lock \"new\" has waiters"},
      {{.name = {}, .token = FencingToken(42)}, "its last token, 42"}};
  for (const auto& [used, why] : in_use) {
    info = used;
    const Failure failure = thrown_by([&] { (void)client.forget("new"); });
    EXPECT_EQ(failure.code, errc::timed_out);
    EXPECT_NE(failure.detail.find(why), std::string::npos) << failure.detail;
  }
}

// --- Ping ------------------------------------------------------------------------------------------------------------

TEST(ClientPing, Ping_RepeatsUntilAnAnswerOrTheDeadline) {
  const auto service = std::make_shared<test::FakeService>();
  service->capabilities.can_inspect = true;
  const Client client = connect("fake://", {.label = "test"}, service->factory());
  const Failure down{errc::unavailable, "down"};
  struct Row {
    std::vector<Failure> answers;  // the last one again and again; none: it is well
    Duration wait;
    std::error_code code;
    std::uint64_t asked;  // at least, where it waits
  };
  const std::vector<Row> rows = {{{}, 0s, {}, 1},
                                 {{}, forever, {}, 1},
                                 {{down, {errc::unavailable, "starting"}, {}}, 1min, {}, 3},
                                 {{down}, 0s, errc::unavailable, 1},
                                 {{down}, 100ms, errc::unavailable, 1},
                                 {{{errc::access_denied, "down"}}, forever, errc::access_denied, 1},
                                 {{{errc::protocol, "down"}}, forever, errc::protocol, 1},
                                 {{{errc::invalid_argument, "down"}}, forever, errc::invalid_argument, 1}};
  for (const Row& row : rows) {
    service->asked = 0;
    service->on_inspect = [&](const std::string& name) {
      EXPECT_EQ(name, "dlock-ping");
      if (row.answers.empty()) return Result<LockInfo>(LockInfo{.name = name});
      const Failure answer = row.answers[std::min<std::size_t>(service->asked, row.answers.size()) - 1];
      return answer.code ? Result<LockInfo>(answer) : Result<LockInfo>(LockInfo{.name = name});
    };
    const Failure failure = thrown_by([&] { client.ping(row.wait); });
    EXPECT_EQ(failure.code, row.code);
    EXPECT_EQ(failure.detail, row.code ? "down" : "") << "the last reason";
    EXPECT_TRUE(service->asked == row.asked || (service->asked > row.asked && row.wait == Duration(100ms)));
  }
  service->on_inspect = nullptr;
  EXPECT_EQ(thrown_by([&] { client.ping(20ms, "mine"); }).detail, "the service did not answer in time");
  service->asked = 0;
  EXPECT_EQ(thrown_by([&] { client.ping(-1s); }).code, errc::invalid_argument);
  EXPECT_EQ(thrown_by([&] { client.ping(1s, ""); }).code, errc::invalid_argument);
  EXPECT_EQ(service->asked, 0U);
  service->capabilities.can_inspect = false;
  EXPECT_EQ(thrown_by([&] { client.ping(forever); }).code, errc::unsupported);
  EXPECT_TRUE(service->contends.empty());
  service->questions.clear();
}

// --- Life ------------------------------------------------------------------------------------------------------------

TEST_F(ClientTest, Handler_MayDestroyItsClient) {
  util::Event done;
  {
    auto client = std::make_unique<Client>(make());
    DistributedLock lock = client->make_lock("x");
    auto at_end = std::shared_ptr<void>(nullptr, [&done](void*) { done.set(); });
    lock.async_acquire({}, [owned = std::move(client), at_end = std::move(at_end)](std::error_code, const Lease&) {});
  }
  EXPECT_TRUE(done.wait(rig::hang_guard));
}

// --- The manual clock of a program that tests itself -----------------------------------------------------------------

enum class Service { memory, file };

// The tests read without a lock, because advance() has waited for the handlers that write.
class AdvanceTest : public testing::TestWithParam<Service> {
 protected:
  [[nodiscard]] Client make(ClientOptions options = {}) const {
    options.clock = clock_;
    return connect(GetParam() == Service::memory ? "memory://advance" : "file://" + scratch_.path(),
                   std::move(options));
  }

  rig::ScratchDirectory scratch_;
  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
};

INSTANTIATE_TEST_SUITE_P(All, AdvanceTest, testing::Values(Service::memory, Service::file),
                         [](const auto& each) { return each.param == Service::memory ? "Memory" : "File"; });

struct CountingObserver final : Observer {
  void lost(const LostEvent& /*event*/) override { ++losses; }
  int losses = 0;
};

TEST_P(AdvanceTest, LossesHandlersAndObservers_HaveRunWhenItReturns) {
  for (int repetition = 0; repetition < 50; ++repetition) {
    const auto observer = std::make_shared<CountingObserver>();
    Client client = make({.observer = observer});
    // Names enough for all of the client's engines.
    constexpr int names = 32;
    std::vector<Lease> leases;
    int lost = 0;
    std::vector<std::unique_ptr<std::stop_callback<std::function<void()>>>> on_loss;
    for (int i = 0; i < names; ++i) {
      leases.push_back(client.make_lock("job" + std::to_string(i)).acquire({.lease = 10s, .renew = false}));
      on_loss.push_back(
          std::make_unique<std::stop_callback<std::function<void()>>>(leases.back().lost(), [&] { ++lost; }));
    }
    const Lease held = client.make_lock("held").acquire();
    DistributedLock free = client.make_lock("free");
    std::optional<std::error_code> ended;
    bool released = false;
    client.make_lock("held").async_acquire({.wait = 10s}, [&](std::error_code why, const Lease& /*none*/) {
      ended = why;
      free.async_acquire({}, [&](std::error_code /*ec*/, Lease lease) {
        const auto kept = std::make_shared<Lease>(std::move(lease));
        kept->async_release([&, kept](std::error_code /*ec*/, bool was_ours) { released = was_ours; });
      });
    });
    clock_->advance(9s);
    ASSERT_EQ(lost, 0);
    ASSERT_FALSE(ended);
    clock_->advance(1s);
    ASSERT_EQ(lost, names);
    ASSERT_EQ(observer->losses, names);
    ASSERT_EQ(ended, errc::timed_out);
    ASSERT_TRUE(released) << "by what a handler started";
  }
}

TEST(AdvanceOfTwoClients, HandOver_HasArrivedWhenItReturns) {
  const auto clock = std::make_shared<ManualClock>();
  for (int repetition = 0; repetition < 50; ++repetition) {
    const Client one = connect("memory://two", {.clock = clock});
    const Client two = connect("memory://two", {.clock = clock});
    const Lease first = one.make_lock("job").acquire({.lease = 10s, .renew = false});
    Lease second;
    Lease third;
    two.make_lock("job").async_acquire({.lease = 10s, .renew = false},
                                       [&](std::error_code /*ec*/, Lease lease) { second = std::move(lease); });
    one.make_lock("job").async_acquire({}, [&](std::error_code /*ec*/, Lease lease) { third = std::move(lease); });
    clock->advance(10s);
    ASSERT_TRUE(second.held());
    ASSERT_FALSE(third.held());
    clock->advance(10s);
    ASSERT_FALSE(second.held());
    ASSERT_TRUE(third.held());
  }
}

}  // namespace
}  // namespace dlock
