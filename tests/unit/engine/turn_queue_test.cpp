#include "engine/turn_queue.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace dlock::engine {
namespace {

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

TEST_F(TurnQueueTest, IdleBeginsOrAsksTheLoop) {
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

TEST_F(TurnQueueTest, ATurnEndsWhenNoTaskWaits) {
  EXPECT_EQ(queue_.wait_to_begin(), State::idle);
  for (const bool begins : {true, false}) {
    EXPECT_EQ(add('a', begins), Added::to_turn);
    EXPECT_EQ(add('b', begins), Added::to_turn);
    EXPECT_FALSE(begin_for_loop());
    EXPECT_FALSE(queue_.try_end(false));
    EXPECT_FALSE(queue_.try_end(true));
    EXPECT_EQ(take(), "ab");
  }
  EXPECT_TRUE(queue_.try_end(false));
}

TEST_F(TurnQueueTest, WhatWasLeftIsTakenByTheLoopOrByOneThatWaitsAndByNoOther) {
  for (const bool by_loop : {true, false}) {
    EXPECT_EQ(queue_.wait_to_begin(), State::idle);
    EXPECT_EQ(add('a', true), Added::to_turn);
    pass_to_loop();
    EXPECT_EQ(add('b', true), Added::to_turn) << "behind what was left";
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

TEST_F(TurnQueueTest, AfterTheLastTurnAllIsRefused) {
  EXPECT_EQ(queue_.wait_to_begin(), State::idle);
  EXPECT_TRUE(queue_.try_end(true));
  EXPECT_EQ(add('a', true), Added::refused);
  EXPECT_EQ(add('b', false), Added::refused);
  EXPECT_FALSE(begin_for_loop());
  EXPECT_EQ(queue_.wait_to_begin(), State::stopped);
}

TEST_F(TurnQueueTest, ThreadsThatWaitGetATurnEachOrLearnOfTheEnd) {
  for (const bool stops : {false, true}) {
    constexpr int count = 8;
    TurnQueue queue;
    EXPECT_EQ(queue.wait_to_begin(), State::idle);
    int turns = 0;
    std::atomic<int> refused = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) {
      threads.emplace_back([&] {
        for (int turn = 0; turn < 100; ++turn) {
          if (queue.wait_to_begin() == State::stopped) {
            ++refused;
            return;
          }
          ++turns;  // a race unless turns exclude each other
          EXPECT_TRUE(queue.try_end(false));
        }
      });
    }
    for (int i = 0; i < 200; ++i) std::this_thread::yield();  // some fall asleep
    EXPECT_TRUE(queue.try_end(stops));
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(turns, stops ? 0 : 100 * count);
    EXPECT_EQ(refused, stops ? count : 0);
  }
}

}  // namespace
}  // namespace dlock::engine
