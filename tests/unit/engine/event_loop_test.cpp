#include "engine/event_loop.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include "engine/lead_policy.hpp"
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

  bool notify(Task user_code, UserCode kind = UserCode::completion) {
    return loop_.notify(std::move(user_code), kind, false) == Notified::accepted;
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

TEST_F(EventLoopTest, CallerThatComesAlone_RunsHandlers) {
  come_alone_until_leading();
  EXPECT_EQ(loop_.callers_waiting(), 0);
  util::Event ran;
  loop_.post([&] {
    EXPECT_TRUE(loop_.on_own_thread());
    ran.set();
  });
  EXPECT_TRUE(ran.wait(rig::hang_guard));
}

TEST_F(EventLoopTest, UserCode_RunsOnTheLoopsOwnThread) {
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

TEST_F(EventLoopTest, Handlers_RunBetweenUserCodeThatStartsMore) {
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

TEST_F(EventLoopTest, LossSignal_WaitsForOneHandlerOnly) {
  constexpr int count = 300;
  util::Event inside;
  util::Event go_on;
  ASSERT_TRUE(notify([&] {
    inside.set();
    (void)go_on.wait();
  }));
  ASSERT_TRUE(inside.wait(rig::hang_guard));
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

TEST_F(EventLoopTest, EventThatIsSetOutsideTheLoop_EndsTheWait) {
  for (const bool before : {true, false}) {
    if (!before) come_alone_until_leading();
    EXPECT_TRUE(wait_for([&](util::Event& event) {
      event.set();
      loop_.look_again();
    }));
  }
}

TEST_F(EventLoopTest, Caller_LeadsForAMomentOnly) {
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

TEST_F(EventLoopTest, Wait_EndsAtItsLimit) {
  util::Event never;
  EXPECT_FALSE(loop_.wait(never, 1ms));
  EXPECT_FALSE(loop_.wait(never, 5ms));
  come_alone_until_leading();
  EXPECT_FALSE(loop_.wait(never, 0ns));
  EXPECT_FALSE(loop_.wait(never, 1ms));
  EXPECT_FALSE(loop_.wait(never, -1s));
}

TEST_F(EventLoopTest, EndWhileACallerWaits_IsFinal) {
  come_alone_until_leading();
  EXPECT_TRUE(wait_for([&](util::Event& event) {
    end();
    event.set();
  }));
  EXPECT_FALSE(notify([] { FAIL(); }));
}

// It may get the id of the loop's own thread, which has ended.
TEST_F(EventLoopTest, ThreadAfterTheEnd_IsNotTakenForTheLoopsOwn) {
  end();
  for (int i = 0; i < 10; ++i) std::thread([this] { EXPECT_FALSE(loop_.on_own_thread()); }).join();
}

// --- Which thread runs the loop
// ----------------------------------------------------------------------------------------

class LeadPolicyTest : public testing::Test {
 protected:
  using Clock = LeadPolicy::Clock;

  // A caller that waits alone, for so long.
  void come_and_go(std::chrono::nanoseconds waits = 50us, bool led = false) {
    const auto since = now_;
    policy_.came(event_);
    now_ += waits;
    policy_.went(led, since, now_);
  }
  void come_alone(int times) {
    for (int i = 0; i < times; ++i) come_and_go();
  }
  [[nodiscard]] bool may_leave() const { return policy_.own_thread_may_leave(now_); }

  util::Event event_;
  util::Event other_event_;
  LeadPolicy policy_;
  Clock::time_point now_{1h};
};

TEST_F(LeadPolicyTest, CallersThatComeAlone_GetTheLead) {
  struct Row {
    const char* name;
    const char* calls;  // . alone; 2 two at once; L alone, for long; s just not for long; l alone, and leads; g a gap
    bool may_leave;
  };
  for (const auto& [name, calls, leaves] : {
           Row{"at first", "", false},
           {"too few", "..", false},
           {"enough", "...", true},
           {"no next one within the gap", "...g", false},
           {"what was learnt is kept", "...g.", true},
           {"several at once", "...2", false},
           {"the last of several went alone, too", "...2..", true},
           {"only the last of several counts", "22", false},
           {"who waits for long teaches nothing", "LLLLL", false},
           {"who leads teaches nothing", "lllll", false},
           {"nearly long", "sss", true},
       }) {
    policy_ = LeadPolicy();
    for (const char* call = calls; *call != '\0'; ++call) {
      if (*call == 'g') {
        now_ += LeadPolicy::longest_gap - 1ns;
        EXPECT_TRUE(may_leave()) << name;
        now_ += 1ns;
      } else if (*call == '2') {
        policy_.came(event_);
        policy_.came(other_event_);
        EXPECT_EQ(policy_.waiting(), 2);
        policy_.went(false, now_, now_);
        policy_.went(false, now_, now_);
      } else {
        const auto longest = LeadPolicy::longest_lead;
        come_and_go(*call == 'L' ? longest : *call == 's' ? longest - 1ns : 50us, *call == 'l');
      }
    }
    EXPECT_EQ(policy_.waiting(), 0);
    EXPECT_EQ(may_leave(), leaves) << name;
  }
}

TEST_F(LeadPolicyTest, CallerWithoutAnAnswer_KeepsTheOwnThread) {
  come_alone(3);
  policy_.came(event_);
  EXPECT_FALSE(may_leave()) << "it sleeps until somebody reads its answer";
  event_.set();
  EXPECT_TRUE(may_leave());
  now_ += LeadPolicy::longest_gap;
  EXPECT_TRUE(may_leave()) << "however long that took";
}

TEST_F(LeadPolicyTest, LastOfSeveral_IsNotOneThatCameAlone) {
  come_alone(3);
  event_.set();
  other_event_.set();
  policy_.came(event_);
  policy_.came(other_event_);
  policy_.went(false, now_, now_);
  EXPECT_EQ(policy_.waiting(), 1);
  EXPECT_FALSE(may_leave());
}

TEST(AnswerPolling, Duration_FollowsTheAnswers) {
  struct Row {
    std::chrono::nanoseconds waited;
    std::chrono::nanoseconds then;
  };
  AnswerPolling polling;
  EXPECT_EQ(polling.duration(), 0ns) << "until an answer came soon, the thread sleeps";
  int number = 0;
  for (const auto& [waited, then] : {
           Row{5us, 10us},
           {5us, 10us},  // long enough already
           {15us, 20us},
           {30us, 40us},
           {50us, 80us},
           {90us, 100us},
           {100us, 100us},
           {100'001ns, 50us},
           {60us, 100us},
           {1s, 50us},
           {1s, 25us},
           {1s, 12'500ns},
           {1s, 0us},
           {100us, 10us},
           {0us, 10us},
       }) {
    polling.waited(waited);
    EXPECT_EQ(polling.duration(), then) << "row " << number;
    ++number;
  }
}

}  // namespace
}  // namespace dlock::engine
