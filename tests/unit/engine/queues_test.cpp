// The queues of an engine: timers, tasks that wait for a turn, user code.
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/timer_queue.hpp"
#include "engine/turn_queue.hpp"
#include "engine/user_code.hpp"
#include "torture/dice.hpp"

namespace dlock::engine {
namespace {

using namespace std::chrono_literals;

// --- Timers ----------------------------------------------------------------------------------------------------------

constexpr TimePoint kNow{std::chrono::hours(1)};

TEST(TimerQueue, Timers_RunOnceUntilTheEndsOfTime) {
  TimerQueue queue;
  std::vector<int> ran;
  const auto add = [&](TimePoint at, int tag) { return queue.add(at, [&ran, tag] { ran.push_back(tag); }); };
  const auto run_due = [&](TimePoint now) {
    while (const auto task = queue.pop_due(now)) (*task)();
    return std::exchange(ran, {});
  };
  const auto first = add(kNow, 1);
  EXPECT_NE(first, 0U);
  EXPECT_EQ(run_due(kNow), (std::vector{1}));
  EXPECT_NE(add(kNow, 2), first) << "ids are not reused";
  queue.cancel(first);
  queue.cancel(0);
  EXPECT_EQ(run_due(kNow), (std::vector{2}));
  add(TimePoint::max(), 4);
  add(TimePoint::min(), 3);
  EXPECT_EQ(run_due(kNow), (std::vector{3}));
  EXPECT_EQ(queue.next(), TimePoint::max());
  EXPECT_EQ(run_due(TimePoint::max()), (std::vector{4}));
  const auto held = std::make_shared<int>(1);
  queue.cancel(queue.add(kNow, [held] {}));
  EXPECT_EQ(held.use_count(), 1) << "a cancelled timer holds nothing";
}

// Against a container of the standard library, by a seed.
TEST(TimerQueue, RandomCalls_DoTheSameAsASortedList) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    torture::Dice dice(seed);
    TimerQueue queue;
    std::multimap<TimePoint, int> expected;  // equal keys in the order they were added
    std::map<int, std::pair<TimerQueue::Id, std::multimap<TimePoint, int>::iterator>> armed;
    std::vector<TimerQueue::Id> over;
    std::vector<int> ran;
    TimePoint now = kNow;
    const std::uint64_t crowd = 1 + dice.below(200);
    for (int i = 0; i < 3000; ++i) {
      const auto what = dice.below(10);
      if (what < 5 && armed.size() < crowd) {
        const auto at = now + std::chrono::nanoseconds(dice.below(20));
        const auto id = queue.add(at, [&ran, i] { ran.push_back(i); });
        armed[i] = {id, expected.emplace(at, i)};
      } else if (what < 7 && !armed.empty()) {
        const auto found = std::next(armed.begin(), static_cast<std::ptrdiff_t>(dice.below(armed.size())));
        queue.cancel(found->second.first);
        over.push_back(found->second.first);
        expected.erase(found->second.second);
        armed.erase(found);
      } else if (what < 8 && !over.empty()) {
        queue.cancel(dice.pick(over));
      } else {
        now += std::chrono::nanoseconds(dice.below(5));
        ran.clear();
        std::vector<int> due;
        for (auto left = dice.below(10); left > 0; --left) {
          if (const auto task = queue.pop_due(now)) (*task)();
          if (expected.empty() || expected.begin()->first > now) continue;
          due.push_back(expected.begin()->second);
          over.push_back(armed.at(due.back()).first);
          armed.erase(due.back());
          expected.erase(expected.begin());
        }
        ASSERT_EQ(ran, due);
      }
      ASSERT_EQ(queue.size(), expected.size());
      ASSERT_EQ(queue.next(), expected.empty() ? std::nullopt : std::optional(expected.begin()->first));
    }
  }
}

// --- Turns -----------------------------------------------------------------------------------------------------------

using Added = TurnQueue::Added;
using State = TurnQueue::State;

class TurnQueueTest : public testing::Test {
 protected:
  // Each calls the function of its name; the thread-safety analysis does not see through these tests.
  [[nodiscard]] Added add(char name, bool begins) {
    Task task = [this, name] { ran_ += name; };
    const Added added = queue_.add(task, begins);
    EXPECT_EQ(static_cast<bool>(task), added == Added::with_turn || added == Added::refused) << name;
    return added;
  }
  // Takes the tasks that wait, and answers their names in their order.
  std::string take() DLOCK_NO_THREAD_SAFETY_ANALYSIS {
    std::deque<Task> batch;
    const bool some = queue_.take_tasks(batch);
    EXPECT_EQ(some, !batch.empty());
    ran_.clear();
    for (const Task& task : batch) task();
    return ran_;
  }
  [[nodiscard]] bool begin_for_loop() DLOCK_NO_THREAD_SAFETY_ANALYSIS { return queue_.begin_for_loop(); }
  void pass_to_loop() DLOCK_NO_THREAD_SAFETY_ANALYSIS { queue_.pass_to_loop(); }

  TurnQueue queue_;
  std::string ran_;
};

TEST_F(TurnQueueTest, IdleQueue_BeginsATurnOrAsksTheLoop) {
  EXPECT_EQ(add('a', true), Added::with_turn);
  EXPECT_EQ(take(), "") << "the caller keeps its task";
  EXPECT_TRUE(queue_.try_end(false));
  EXPECT_EQ(add('b', false), Added::ask_loop);
  EXPECT_TRUE(begin_for_loop());
  EXPECT_EQ(take(), "b");
  EXPECT_TRUE(queue_.try_end(false));
  EXPECT_FALSE(begin_for_loop()) << "nothing was left";
  EXPECT_EQ(queue_.wait_to_begin(), State::idle);
}

TEST_F(TurnQueueTest, Turn_EndsWhenNoTaskWaits) {
  EXPECT_EQ(queue_.wait_to_begin(), State::idle);
  for (const bool begins : {true, false}) {
    EXPECT_EQ(add('a', begins), Added::to_turn);
    EXPECT_EQ(add('b', begins), Added::to_turn);
    EXPECT_FALSE(begin_for_loop());
    EXPECT_FALSE(queue_.try_end(false));
    EXPECT_FALSE(queue_.try_end(true));
    EXPECT_EQ(take(), "ab");
  }
  EXPECT_TRUE(queue_.try_end(true));
  EXPECT_EQ(add('a', true), Added::refused);
  EXPECT_EQ(add('b', false), Added::refused);
  EXPECT_FALSE(begin_for_loop());
  EXPECT_EQ(queue_.wait_to_begin(), State::stopped);
}

TEST_F(TurnQueueTest, RestOfATurn_IsTakenByTheLoopOrAWaitingThread) {
  for (const bool by_loop : {true, false}) {
    EXPECT_EQ(queue_.wait_to_begin(), State::idle);
    EXPECT_EQ(add('a', true), Added::to_turn);
    pass_to_loop();
    EXPECT_EQ(add('b', true), Added::to_turn) << "behind the rest";
    EXPECT_EQ(add('c', false), Added::to_turn) << "the loop has been asked";
    if (by_loop) {
      EXPECT_TRUE(begin_for_loop());
    } else {
      EXPECT_EQ(queue_.wait_to_begin(), State::for_loop);
    }
    EXPECT_FALSE(begin_for_loop());
    EXPECT_EQ(take(), "abc");
    EXPECT_TRUE(queue_.try_end(false));
  }
}

// --- User code -------------------------------------------------------------------------------------------------------

// A script: L: a loss signal, C: a completion, E: an event, each numbered within its kind; a digit: so many run.
TEST(UserCodeQueue, Order_IsLossSignalsThenBothOthersInTurn) {
  const std::pair<const char*, const char*> rows[] = {{"", ""},
                                                      {"CCC", "C1 C2 C3"},
                                                      {"EEE", "E1 E2 E3"},
                                                      {"CL", "L1 C1"},
                                                      {"ECLCEL", "L1 L2 C1 E1 C2 E2"},
                                                      {"CCCE", "C1 E1 C2 C3"},
                                                      {"EEEC", "C1 E1 E2 E3"},
                                                      {"EECC", "C1 E1 C2 E2"},
                                                      {"CECE1LL", "C1 L1 L2 E1 C2 E2"},
                                                      {"CCC2EC2E", "C1 C2 E1 C3 E2 C4"}};
  for (const auto& [script, runs] : rows) {
    UserCodeQueue queue;
    std::map<char, int> pushed;
    std::string ran;
    const auto run = [&](int most) {
      for (; most > 0 && !queue.empty(); --most) queue.pop()();
    };
    for (const char* step = script; *step != '\0'; ++step) {
      if (*step >= '0' && *step <= '9') {
        run(*step - '0');
        continue;
      }
      const std::string name = *step + std::to_string(++pushed[*step]);
      ASSERT_TRUE(queue.push(*step == 'L'   ? UserCode::loss_signal
                             : *step == 'C' ? UserCode::completion
                                            : UserCode::event,
                             [&ran, name] { ran += (ran.empty() ? "" : " ") + name; }));
    }
    run(1000);
    EXPECT_EQ(ran, runs) << script;
    EXPECT_TRUE(queue.empty());
  }
}

TEST(UserCodeQueue, Events_AreBoundedAndARefusedOneStaysWithTheCaller) {
  UserCodeQueue queue;
  for (std::size_t i = 0; i < UserCodeQueue::most_events; ++i) ASSERT_TRUE(queue.push(UserCode::event, [] {}));
  int ran = 0;
  Task refused = [&ran, kept = std::make_unique<int>(1)] { ran += *kept; };
  EXPECT_FALSE(queue.push(UserCode::event, std::move(refused)));
  ASSERT_TRUE(refused);  // NOLINT(bugprone-use-after-move): not moved from, as documented
  refused();
  EXPECT_EQ(ran, 1);
  for (std::size_t i = 0; i < UserCodeQueue::most_events + 10; ++i) {
    ASSERT_TRUE(queue.push(UserCode::loss_signal, [] {}));
    ASSERT_TRUE(queue.push(UserCode::completion, [] {}));
  }
  for (std::size_t i = 0; i < UserCodeQueue::most_events + 12; ++i) queue.pop()();
  EXPECT_TRUE(queue.push(UserCode::event, std::move(refused))) << "there is room again";
}

}  // namespace
}  // namespace dlock::engine
