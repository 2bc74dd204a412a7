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

TEST_F(LeadPolicyTest, TheOwnThreadLeadsUntilItKnowsBetter) {
  EXPECT_FALSE(may_leave());
  come_alone(2);
  EXPECT_FALSE(may_leave());
  come_alone(1);
  EXPECT_TRUE(may_leave());
}

TEST_F(LeadPolicyTest, ItLeadsAgainWhenTheNextDoesNotComeWithinTheGap) {
  come_alone(3);
  now_ += LeadPolicy::longest_gap - 1ns;
  EXPECT_TRUE(may_leave());
  now_ += 1ns;
  EXPECT_FALSE(may_leave());
  come_alone(1);
  EXPECT_TRUE(may_leave()) << "what was learnt is kept";
}

TEST_F(LeadPolicyTest, SeveralAtOnceMakeItLeadUntilTheyComeAloneAgain) {
  come_alone(3);
  policy_.came(event_);
  policy_.came(other_event_);
  EXPECT_EQ(policy_.waiting(), 2);
  EXPECT_FALSE(may_leave());
  policy_.went(false, now_, now_);
  policy_.went(false, now_, now_);
  EXPECT_EQ(policy_.waiting(), 0);
  EXPECT_FALSE(may_leave());
  come_alone(2);
  EXPECT_TRUE(may_leave()) << "the last of the several went alone, too";
}

TEST_F(LeadPolicyTest, OfSeveralOnlyTheLastCountsAsAlone) {
  for (int i = 0; i < 3; ++i) {
    policy_.came(event_);
    policy_.came(other_event_);
    policy_.went(false, now_, now_);
    policy_.went(false, now_, now_);
  }
  EXPECT_FALSE(may_leave());
}

TEST_F(LeadPolicyTest, WhoWaitedLongOrLedItselfTeachesNothing) {
  for (int i = 0; i < 5; ++i) come_and_go(LeadPolicy::longest_lead);
  EXPECT_FALSE(may_leave());
  for (int i = 0; i < 5; ++i) come_and_go(50us, true);
  EXPECT_FALSE(may_leave());
  for (int i = 0; i < 3; ++i) come_and_go(LeadPolicy::longest_lead - 1ns);
  EXPECT_TRUE(may_leave());
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
