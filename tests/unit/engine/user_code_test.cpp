#include "engine/user_code.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dlock::engine {
namespace {

class UserCodeQueueTest : public testing::Test {
 protected:
  // L: a loss signal, C: a completion, E: an event. Each is numbered within its kind.
  void push(const std::string& kinds) {
    for (const char kind : kinds) {
      const std::string name = kind + std::to_string(++pushed_[static_cast<unsigned char>(kind)]);
      ASSERT_TRUE(queue_.push(kind == 'L'   ? UserCode::loss_signal
                              : kind == 'C' ? UserCode::completion
                                            : UserCode::event,
                              [this, name] { ran_ += (ran_.empty() ? "" : " ") + name; }));
    }
  }
  std::string run(int most = 1000) {
    ran_.clear();
    for (; most > 0 && !queue_.empty(); --most) queue_.pop()();
    return ran_;
  }

  UserCodeQueue queue_;
  std::vector<int> pushed_ = std::vector<int>(256, 0);
  std::string ran_;
};

TEST_F(UserCodeQueueTest, RunsByTheTableOfItsRules) {
  struct Row {
    const char* pushed;
    const char* runs;
  };
  for (const auto& [pushed, runs] : {
           Row{"", ""},
           {"CCC", "C1 C2 C3"},
           {"EEE", "E1 E2 E3"},
           {"CL", "L1 C1"},
           {"ECLCEL", "L1 L2 C1 E1 C2 E2"},
           {"CCCE", "C1 E1 C2 C3"},
           {"EEEC", "C1 E1 E2 E3"},
           {"EECC", "C1 E1 C2 E2"},
       }) {
    queue_ = UserCodeQueue();
    pushed_.assign(256, 0);
    push(pushed);
    EXPECT_EQ(run(), runs) << pushed;
    EXPECT_TRUE(queue_.empty());
  }
}

TEST_F(UserCodeQueueTest, ALossSignalGoesBeforeWhatHasWaitedForLonger) {
  push("CECE");
  EXPECT_EQ(run(1), "C1");
  push("LL");
  EXPECT_EQ(run(), "L1 L2 E1 C2 E2") << "and the others go on where they were";
}

TEST_F(UserCodeQueueTest, TheOtherKindIsNextHoweverManyComeOfOne) {
  push("CCC");
  EXPECT_EQ(run(2), "C1 C2");
  push("EC");
  EXPECT_EQ(run(2), "E1 C3");
  push("E");
  EXPECT_EQ(run(), "E2 C4");
}

TEST_F(UserCodeQueueTest, EventsAreBoundedAndWhatIsRefusedStaysWithTheCaller) {
  for (std::size_t i = 0; i < UserCodeQueue::most_events; ++i) ASSERT_TRUE(queue_.push(UserCode::event, [] {}));
  int ran = 0;
  Task refused = [&ran, kept = std::make_unique<int>(1)] { ran += *kept; };
  EXPECT_FALSE(queue_.push(UserCode::event, std::move(refused)));
  ASSERT_TRUE(refused);  // NOLINT(bugprone-use-after-move): not moved from, as documented
  refused();
  EXPECT_EQ(ran, 1);
  push("CL");
  EXPECT_EQ(run(2), "L1 C1") << "all others are kept";
  queue_.pop()();
  EXPECT_TRUE(queue_.push(UserCode::event, std::move(refused))) << "there is room again";
}

TEST_F(UserCodeQueueTest, LossSignalsAndCompletionsAreNotBounded) {
  for (std::size_t i = 0; i < UserCodeQueue::most_events + 10; ++i) {
    ASSERT_TRUE(queue_.push(UserCode::loss_signal, [] {}));
    ASSERT_TRUE(queue_.push(UserCode::completion, [] {}));
  }
}

}  // namespace
}  // namespace dlock::engine
