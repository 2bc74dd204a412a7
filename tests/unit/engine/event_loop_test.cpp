#include "engine/event_loop.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "torture/rig/hang_guard.hpp"
#include "util/event.hpp"

namespace dlock::engine {
namespace {

using namespace std::chrono_literals;

class EventLoopTest : public testing::Test {
 protected:
  ~EventLoopTest() override { end(); }

  void end() {
    if (!thread_.joinable()) return;
    loop_.stop();
    loop_.post([this] { loop_.end_work(); });
    thread_.join();
  }

  bool notify(Task user_code, UserCode kind = UserCode::completion, bool although_stopping = false) {
    return loop_.notify(std::move(user_code), kind, although_stopping) == Notified::accepted;
  }

  // Waits while another thread does something as soon as this one waits. Answers whether the wait ended well.
  bool wait_for(const std::function<void(util::Event&)>& act) {
    util::Event event;
    std::thread actor([&] {
      while (loop_.callers_waiting() == 0) std::this_thread::yield();
      act(event);
    });
    const bool set = loop_.wait(event, rig::hang_guard);
    actor.join();
    return set;
  }

  // Keeps the loop's own thread inside user code until the event is set.
  void hold_up_until(util::Event& go_on) {
    const auto inside = std::make_shared<util::Event>();
    ASSERT_TRUE(notify(
        [&go_on, inside] {
          inside->set();
          (void)go_on.wait();
        },
        UserCode::completion));
    ASSERT_TRUE(inside->wait(rig::hang_guard));
  }

  // Comes and goes alone until the loop's own thread leaves the lead to such callers. Then the next one leads.
  void come_alone_until_leading() {
    std::atomic<std::thread::id> ran_on;
    while (ran_on.load() != std::this_thread::get_id()) {
      ASSERT_TRUE(wait_for([&](util::Event& event) {
        loop_.post([&] {
          ran_on = std::this_thread::get_id();
          event.set();
        });
      }));
    }
  }

  EventLoop loop_;
  std::thread thread_{[this] { loop_.run(); }};
};

TEST_F(EventLoopTest, ACallerThatComesAloneRunsTheHandlersItself) {
  come_alone_until_leading();
  EXPECT_EQ(loop_.callers_waiting(), 0);
}

TEST_F(EventLoopTest, ItsOwnThreadRunsWhatComesWhileNobodyWaits) {
  come_alone_until_leading();
  util::Event ran;
  loop_.post([&] {
    EXPECT_TRUE(loop_.on_own_thread());
    ran.set();
  });
  EXPECT_TRUE(ran.wait(rig::hang_guard));
}

TEST_F(EventLoopTest, UserCodeRunsOnItsOwnThreadWhoeverLeads) {
  for (const bool before : {true, false}) {
    if (!before) come_alone_until_leading();
    EXPECT_TRUE(wait_for([&](util::Event& event) {
      EXPECT_TRUE(notify(
          [&] {
            EXPECT_TRUE(loop_.on_own_thread());
            loop_.post([&] { event.set(); });
          },
          UserCode::completion));
    }));
  }
}

TEST_F(EventLoopTest, UserCodeRunsInTheOrderOfTheCalls) {
  std::vector<int> seen;
  util::Event last;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(notify([&seen, i] { seen.push_back(i); }));
  EXPECT_TRUE(notify([&] { last.set(); }));
  ASSERT_TRUE(last.wait(rig::hang_guard));
  ASSERT_EQ(seen.size(), 1000U);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
}

TEST_F(EventLoopTest, HandlersRunBetweenUserCodeThatAlwaysStartsMore) {
  for (const bool before : {true, false}) {
    if (!before) come_alone_until_leading();
    util::Event handled;
    util::Event chain_ended;
    int links = 0;
    std::function<void()> link = [&] {
      if (handled.is_set() || ++links == 1'000'000) return chain_ended.set();
      EXPECT_TRUE(notify(link));
    };
    EXPECT_TRUE(notify(
        [&] {
          loop_.post([&] { handled.set(); });
          link();
        },
        UserCode::completion));
    ASSERT_TRUE(chain_ended.wait(rig::hang_guard));
    EXPECT_LT(links, 1'000'000);
  }
}

TEST_F(EventLoopTest, LossSignalsGoBeforeAllOtherUserCode) {
  util::Event go_on;
  hold_up_until(go_on);
  std::vector<int> order;
  util::Event last;
  for (int i = 10; i < 13; ++i) EXPECT_TRUE(notify([&order, i] { order.push_back(i); }));
  EXPECT_TRUE(notify([&] { last.set(); }));
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(notify([&order, i] { order.push_back(i); }, UserCode::loss_signal));
  }
  go_on.set();
  ASSERT_TRUE(last.wait(rig::hang_guard));
  EXPECT_EQ(order, (std::vector{0, 1, 2, 10, 11, 12}));
}

TEST_F(EventLoopTest, ALossSignalWaitsForOneHandlerNotForARowOfThem) {
  constexpr int count = 300;
  util::Event go_on;
  hold_up_until(go_on);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(notify([] {}));  // more than a batch: handlers run before the rest
  int handled = 0;
  int handled_before = count;
  util::Event all_handled;
  for (int i = 0; i < count; ++i) {
    loop_.post([&] {
      if (++handled == 1) {
        EXPECT_TRUE(notify([&] { handled_before = handled; }, UserCode::loss_signal));
      }
      if (handled == count) all_handled.set();
    });
  }
  go_on.set();
  ASSERT_TRUE(all_handled.wait(rig::hang_guard));
  end();
  EXPECT_LT(handled_before, count / 2);
}

TEST_F(EventLoopTest, AllUserCodeThatWasAcceptedRunsBeforeTheLoopEnds) {
  util::Event go_on;
  hold_up_until(go_on);
  int ran = 0;
  for (int i = 0; i < 10'000; ++i) EXPECT_TRUE(notify([&] { ++ran; }));
  loop_.stop();
  loop_.post([this] { loop_.end_work(); });
  go_on.set();
  thread_.join();
  EXPECT_EQ(ran, 10'000);
}

TEST_F(EventLoopTest, AnEventThatIsSetOutsideTheLoopEndsTheWait) {
  for (const bool before : {true, false}) {
    if (!before) come_alone_until_leading();
    EXPECT_TRUE(wait_for([&](util::Event& event) {
      event.set();
      loop_.look_again();
    }));
  }
}

TEST_F(EventLoopTest, ACallerLeadsForAMomentOnly) {
  come_alone_until_leading();
  EXPECT_TRUE(wait_for([&](util::Event& event) {
    std::atomic<bool> own = false;
    while (!own) {
      util::Event probed;
      loop_.post([&] {
        own = loop_.on_own_thread();
        probed.set();
      });
      ASSERT_TRUE(probed.wait(rig::hang_guard));
    }
    loop_.post([&] { event.set(); });
  }));
}

TEST_F(EventLoopTest, AWaitEndsAtItsLimit) {
  util::Event never;
  EXPECT_FALSE(loop_.wait(never, 1ms));
  EXPECT_FALSE(loop_.wait(never, 5ms));
  come_alone_until_leading();
  EXPECT_FALSE(loop_.wait(never, 0ns));
  EXPECT_FALSE(loop_.wait(never, 1ms));
  EXPECT_FALSE(loop_.wait(never, -1s));
}

TEST_F(EventLoopTest, EndsWhileACallerWaits) {
  come_alone_until_leading();
  EXPECT_TRUE(wait_for([&](util::Event& event) {
    end();
    event.set();
  }));
  EXPECT_FALSE(notify([] { FAIL(); }));
}

// It may get the id of the loop's own thread, which has ended.
TEST_F(EventLoopTest, AThreadThatComesAfterTheEndIsNotTakenForTheLoopsOwn) {
  end();
  for (int i = 0; i < 10; ++i) std::thread([this] { EXPECT_FALSE(loop_.on_own_thread()); }).join();
}

}  // namespace
}  // namespace dlock::engine
