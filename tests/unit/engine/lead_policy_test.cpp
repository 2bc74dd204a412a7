#include "engine/lead_policy.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "util/event.hpp"

namespace dlock::engine {
namespace {

using namespace std::chrono_literals;

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

TEST_F(LeadPolicyTest, TheOwnThreadLeavesTheLeadToCallersThatComeAlone) {
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

TEST_F(LeadPolicyTest, NobodyIsLeftAloneWhoHasNoAnswerYet) {
  come_alone(3);
  policy_.came(event_);
  EXPECT_FALSE(may_leave()) << "it sleeps until somebody reads its answer";
  event_.set();
  EXPECT_TRUE(may_leave());
  now_ += LeadPolicy::longest_gap;
  EXPECT_TRUE(may_leave()) << "however long that took";
}

TEST_F(LeadPolicyTest, WhoIsLeftOfSeveralIsNotTakenForOneThatCameAlone) {
  come_alone(3);
  event_.set();
  other_event_.set();
  policy_.came(event_);
  policy_.came(other_event_);
  policy_.went(false, now_, now_);
  EXPECT_EQ(policy_.waiting(), 1);
  EXPECT_FALSE(may_leave());
}

TEST(AnswerPolling, GrowsWhileAnswersComeSoonAndShrinksWhereTheyDoNot) {
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
