// Where and how the program's own code is called: completion handlers, observers, lost() callbacks.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

#include "tests/support/core_fixture.hpp"

namespace dlock::detail {
namespace {

using namespace std::chrono_literals;

class HandlersTest : public test::CoreTest {
 protected:
  void SetUp() override {
    open();
    service_->answer_everything();
  }
  void in_handler(const std::function<void()>& f) {
    bool done = false;
    core_->context().notifier->complete([&] {
      f();
      done = true;
    });
    engine_->run();
    EXPECT_TRUE(done);
  }
};

TEST_F(HandlersTest, Handlers_RunOutsideTasksInOrder) {
  std::vector<int> order;
  for (int i = 0; i < 5; ++i) {
    core_->context().notifier->complete([&, i] {
      order.push_back(i);
      EXPECT_FALSE(engine_->inside_task());
      EXPECT_TRUE(engine_->must_not_block());
    });
  }
  EXPECT_TRUE(order.empty()) << "never inside the call";
  engine_->run();
  EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4}));
}

TEST_F(HandlersTest, Events_AreReportedOutsideTasksInOrder) {
  observer_->on_event = [&] { EXPECT_FALSE(engine_->inside_task()); };
  {
    Lease lease = hold();
    engine_->advance(12s);
    const auto released = release(lease);
  }
  task([&] {
    service_->host().connection({ConnectionEvent::State::reconnecting, {errc::unavailable, "gone"}});
    service_->host().connection({ConnectionEvent::State::connected, {}});
    service_->host().warn({"", {errc::unavailable, "unsafe setting"}});
  });
  EXPECT_EQ(observer_->events(), (std::vector<std::string>{"acquired x", "renewed x", "released x", "reconnecting",
                                                           "connected", "warning "}));
  EXPECT_EQ(stats().reconnects, 1U);
}

TEST_F(HandlersTest, ExceptionOfUserCode_IsCountedAndReported) {
  core_->context().notifier->complete([] { throw std::runtime_error("oops"); });
  core_->context().notifier->complete([] { throw 42; });
  engine_->run();
  EXPECT_EQ(stats().callback_exceptions, 2U);
  EXPECT_EQ(observer_->count("warning "), 2U);
  observer_->on_event = [] { throw std::runtime_error("oops"); };
  const Lease lease = hold();
  engine_->run();
  EXPECT_TRUE(lease.held());
  EXPECT_EQ(stats().callback_exceptions, 4U) << "the event, and the warning about it";
}

TEST_F(HandlersTest, LossCallbacks_RunBeforePendingEvents) {
  const Lease lease = hold();
  std::vector<std::string> order;
  const std::stop_callback on_lost(lease.lost(), [&] {
    order.emplace_back("lost()");
    EXPECT_FALSE(engine_->inside_task());
    EXPECT_FALSE(lease.held());
  });
  observer_->on_event = [&] { order.push_back(observer_->events().back()); };
  task([&] {
    for (int i = 0; i < 3; ++i) service_->host().warn({"", {errc::unavailable, "unsafe setting"}});
    core_->context().notifier->complete([&] { order.emplace_back("completion"); });
    service_->host().lost(lease.owner(), {errc::lost, ""});
  });
  EXPECT_EQ(order, (std::vector<std::string>{"lost()", "completion", "warning ", "warning ", "warning ", "lost x"}));
}

TEST_F(HandlersTest, PendingEvents_AreBoundedAndDroppedOnesReported) {
  constexpr std::size_t most = 16'384;
  std::size_t completions = 0;
  bool told = false;
  observer_->on_event = [&] {
    const std::string& detail = observer_->last_warning.reason.detail;
    told |= detail.starts_with("5 events") && detail.ends_with("dropped, because the observer cannot keep up");
    if (detail == "unsafe setting") throw std::runtime_error("oops");
  };
  EXPECT_TRUE(engine_->dispatch([&] {
    for (std::size_t i = 0; i < most + 5; ++i) {
      service_->host().warn({"", {errc::unavailable, "unsafe setting"}});
      core_->context().notifier->complete([&] { ++completions; });
    }
  }));
  EXPECT_EQ(stats().events_dropped, 5U);
  engine_->run();
  EXPECT_TRUE(told) << "though the observer throws";
  observer_->on_event = nullptr;
  EXPECT_EQ(completions, most + 5) << "completions are never dropped";
  const auto before = observer_->count("warning ");
  const auto dropped = stats().events_dropped;
  task([&] { service_->host().warn({"", {errc::unavailable, "later"}}); });
  EXPECT_EQ(observer_->count("warning "), before + 1) << "there is room again";
  EXPECT_EQ(stats().events_dropped, dropped);
}

TEST_F(HandlersTest, LeaseInAHandler_IsDestroyedWithoutAWait) {
  Lease lost = hold({.lease = 10s, .renew = false});
  engine_->advance(10s);
  std::optional<Lease> held = hold({}, "y");
  service_->on_release = nullptr;
  const TimePoint start = now();
  in_handler([&] {
    for (Lease* const lease : {&lost, &lost}) EXPECT_FALSE(lease->release());
    EXPECT_FALSE(Lease().release());
    held.reset();
  });
  EXPECT_EQ(now(), start);
  EXPECT_EQ(service_->released.size(), 2U);
}

}  // namespace
}  // namespace dlock::detail
